import { HttpError } from '../../../http/errors.js';
import type { Cluster } from '../kafka/cluster.js';
import { partitionKey, type TopicPartition } from '../kafka/partitions.js';
import { offsetsAt } from '../read/topic-offsets.js';
import type { Coordinators } from './coordinators.js';
import { committedOffsets } from './group-offsets.js';

export type OffsetReset = 'earliest' | 'latest' | 'none';

export interface StartOffset extends TopicPartition {
  readonly readFrom: number;
  /** The group had committed none. */
  readonly isReset: boolean;
}

/** Where a member of a group begins to read. */
export class StartOffsets {
  constructor(
    private readonly cluster: Cluster,
    private readonly coordinators: Coordinators,
    private readonly group: string,
    private readonly offsetReset: OffsetReset,
  ) {}

  /** At the committed offsets, else as configured. @throws HttpError 400 where that is an error */
  async of(partitions: readonly TopicPartition[]): Promise<StartOffset[]> {
    const committed = await committedOffsets(this.coordinators, this.group, partitions);
    const ends = await this.ends(committed.filter(({ offset }) => offset < 0));
    return committed.map(({ topic, partition, offset }) => ({
      topic,
      partition,
      isReset: offset < 0,
      readFrom: offset < 0 ? (ends.get(partitionKey({ topic, partition })) ?? 0) : offset,
    }));
  }

  /** Where to go on when the log does not hold the offset any more. @throws HttpError 400 where that is an error */
  async again(partition: TopicPartition): Promise<number> {
    return (await this.ends([partition])).get(partitionKey(partition)) ?? 0;
  }

  private async ends(partitions: readonly TopicPartition[]): Promise<Map<string, number>> {
    const [first] = partitions;
    if (first === undefined) return new Map();
    if (this.offsetReset === 'none') throw noOffset(this.group, first);
    return offsetsAt(this.cluster, partitions, this.offsetReset);
  }
}

function noOffset(group: string, { topic, partition }: TopicPartition): HttpError {
  const where = `partition ${partition} of ${topic}`;
  return new HttpError(
    'invalid_request',
    `Group ${group} has no committed offset for ${where} that can be read, and auto offset reset is none.`,
  );
}

/** @throws HttpError 400 when the group has no committed offset for some partition of `topics` */
export async function checkCommitted(
  cluster: Cluster,
  coordinators: Coordinators,
  group: string,
  topics: readonly string[],
): Promise<void> {
  const partitions = [...(await cluster.existing(topics))].flatMap(([topic, known]) =>
    known.partitions.map(({ id }) => ({ topic, partition: id })),
  );
  const offsets = await committedOffsets(coordinators, group, partitions);
  const without = offsets.find(({ offset }) => offset < 0);
  if (without !== undefined) throw noOffset(group, without);
}
