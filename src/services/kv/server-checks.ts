/** Parts of a database's settings that say which servers it has. */
export interface ServerSettings {
  readonly url: string | null;
  readonly sentinels: readonly string[];
  readonly replicas: readonly string[];
  readonly readFromReplicas: boolean;
  readonly cluster: boolean;
  readonly nodes: readonly string[];
}

/** What may follow the host: the number of a database; of a Unix socket its path. */
export function namesDatabase(url: URL): boolean {
  return /^\d{0,5}$/.test(databaseOf(url));
}

/** The number as it was written; empty when there is none. */
export function databaseOf({ protocol, pathname, searchParams }: URL): string {
  return protocol === 'unix:' ? (searchParams.get('db') ?? '') : pathname.replace(/^\//, '');
}

/** Which settings contradict each other. */
export function serverProblems(settings: ServerSettings): {
  readonly key: keyof ServerSettings;
  readonly problem: string;
}[] {
  const { url, sentinels, replicas, readFromReplicas } = settings;
  const problems = clusterProblems(settings);
  if (readFromReplicas && sentinels.length === 0)
    problems.push({ key: 'readFromReplicas', problem: 'needs sentinels; without them, list replicas' });
  if (sentinels.length > 0 && replicas.length > 0)
    problems.push({ key: 'replicas', problem: 'with sentinels, set readFromReplicas instead' });
  if (url === null || problems.length > 0) return problems;
  const primary = new URL(url);
  if (sentinels.length > 0 && primary.protocol === 'unix:')
    problems.push({ key: 'sentinels', problem: 'url must hold the name of the primary, not a socket' });
  const numbers = replicas.map((replica) => databaseOf(new URL(replica))).filter((number) => number !== '');
  if (numbers.some((number) => Number(number) !== Number(databaseOf(primary))))
    problems.push({ key: 'replicas', problem: 'expected the same number of a database as in url, or none' });
  return problems;
}

function clusterProblems({ url, sentinels, replicas, cluster, nodes }: ServerSettings) {
  const problems: { key: keyof ServerSettings; problem: string }[] = [];
  if (!cluster && nodes.length > 0)
    problems.push({ key: 'nodes', problem: 'expected cluster: true beside it' });
  if (!cluster) return problems;
  if (sentinels.length > 0) problems.push({ key: 'sentinels', problem: 'a cluster has none' });
  if (replicas.length > 0) problems.push({ key: 'replicas', problem: 'those of a cluster are not read' });
  if (url === null || !URL.canParse(url)) return problems;
  const { protocol, pathname } = new URL(url);
  if (protocol === 'unix:')
    problems.push({ key: 'url', problem: 'a cluster is reached over TCP: expected redis:// or rediss://' });
  else if (!/^\/?0*$/.test(pathname)) problems.push({ key: 'url', problem: 'a cluster has database 0 only' });
  return problems;
}
