/** A topic that the configuration asks for. */
export interface DeclaredTopic {
  readonly name: string;
  /** -1: as many as the brokers' default. */
  readonly partitions: number;
}

/** `name` or `name:partitions` */
export function parseDeclaredTopic(text: string): DeclaredTopic {
  const [name = '', partitions] = text.split(':');
  return { name, partitions: partitions === undefined ? -1 : Number(partitions) };
}

/** Asks Kafka about topics by name; those that do not exist are left out. */
export interface TopicSource {
  topics(names: readonly string[], fresh: boolean): Promise<ReadonlyMap<string, unknown>>;
}

/**
 * Makes the declared topics that do not exist; one that does is left as it is, whatever its partitions.
 * @param create makes topics; one that another gateway has made meanwhile is no error
 */
export async function makeDeclaredTopics(
  cluster: TopicSource,
  declared: readonly DeclaredTopic[],
  create: (missing: readonly DeclaredTopic[]) => Promise<void>,
): Promise<void> {
  if (declared.length === 0) return;
  const names = declared.map(({ name }) => name);
  const existing = await cluster.topics(names, true);
  const missing = declared.filter(({ name }) => !existing.has(name));
  if (missing.length === 0) return;
  await create(missing);
  await cluster.topics(names, true);
}
