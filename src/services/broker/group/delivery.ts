import { partitionKey } from '../kafka/partitions.js';
import { putBack, type Taken, type TakenPart } from '../read/assigned-logs.js';
import type { TopicPartitionOffset } from './group-offsets.js';
import type { OffsetCommits } from './offset-commits.js';

/** Records handed out together; exactly one of `arrived` and `putBack` is called. */
export interface Delivery {
  /** As JSON. */
  readonly messages: Buffer;
  readonly count: number;
  arrived(): void;
  putBack(): void;
  /** What lies before `positions` is not put back any more. @returns whether nothing is left */
  passOver(positions: readonly TopicPartitionOffset[]): boolean;
  /** After `arrived`, when the client turns out not to have read them: they come again, and what follows them. */
  takeBack(): void;
}

/** @param onTakenBack there is something to take again */
export function deliveryOf(taken: Taken, commits: OffsetCommits, onTakenBack: () => void): Delivery {
  let { parts } = taken;
  return {
    messages: taken.json,
    count: taken.count,
    arrived: () => arrived(parts, commits),
    putBack: () => putBack(parts),
    passOver: (positions) => {
      parts = partsBehind(parts, positions);
      return parts.every(({ begin, end }) => begin === end);
    },
    takeBack: () => {
      takeBack(parts, commits);
      onTakenBack();
    },
  };
}

function arrived(parts: readonly TakenPart[], commits: OffsetCommits): void {
  for (const { from, end } of parts) {
    from.isOut = false;
    // it is somebody else's by now, and read again from the committed offset; or it was taken back meanwhile
    if (from.isLost || from.nextOffset < end) continue;
    // beyond `end` where what follows is not for readers
    commits.delivered({ topic: from.topic, partition: from.partition, offset: from.nextOffset });
  }
}

function takeBack(parts: readonly TakenPart[], commits: OffsetCommits): void {
  putBack(parts);
  for (const { from, begin: offset } of parts) {
    const { topic, partition, nextOffset } = from;
    if (!from.isLost && nextOffset === offset) commits.delivered({ topic, partition, offset });
  }
}

function partsBehind(
  parts: readonly TakenPart[],
  positions: readonly TopicPartitionOffset[],
): readonly TakenPart[] {
  const offsets = new Map(positions.map((position) => [partitionKey(position), position.offset]));
  return parts.map((part) => {
    const offset = offsets.get(partitionKey(part.from)) ?? 0;
    return { ...part, begin: Math.max(part.begin, Math.min(offset, part.end)) };
  });
}
