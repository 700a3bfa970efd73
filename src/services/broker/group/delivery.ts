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
  /**
   * The client has committed `positions` itself: what lies before them comes never again, and the arrival of the rest says
   * nothing about where these partitions are to go on. @returns whether nothing is left
   */
  passOver(positions: readonly TopicPartitionOffset[]): boolean;
  /** After `arrived`, when the client turns out not to have read them: they come again, and what follows them. */
  takeBack(): void;
}

interface Part extends TakenPart {
  /** The client has committed an offset of the partition since it was handed out. */
  readonly isChosen?: boolean;
}

/** @param onTakenBack there is something to take again */
export function deliveryOf(taken: Taken, commits: OffsetCommits, onTakenBack: () => void): Delivery {
  let parts: readonly Part[] = taken.parts;
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

function arrived(parts: readonly Part[], commits: OffsetCommits): void {
  for (const { from, end, isChosen } of parts) {
    from.isOut = false;
    // where the client has chosen where to go on, its choice must not be undone
    if (isChosen) continue;
    // it is somebody else's by now, and read again from the committed offset; or it was taken back meanwhile
    if (from.isLost || from.nextOffset < end) continue;
    // beyond `end` where what follows is not for readers
    commits.delivered({ topic: from.topic, partition: from.partition, offset: from.nextOffset });
  }
}

function takeBack(parts: readonly Part[], commits: OffsetCommits): void {
  const left = parts.filter(({ begin, end }) => begin < end);
  putBack(left);
  for (const { from, begin: offset } of left) {
    const { topic, partition, nextOffset } = from;
    if (!from.isLost && nextOffset === offset) commits.passed({ topic, partition, offset });
  }
}

function partsBehind(parts: readonly Part[], positions: readonly TopicPartitionOffset[]): readonly Part[] {
  const offsets = new Map(positions.map((position) => [partitionKey(position), position.offset]));
  return parts.map((part) => {
    const offset = offsets.get(partitionKey(part.from));
    if (offset === undefined) return part;
    return { ...part, begin: Math.max(part.begin, Math.min(offset, part.end)), isChosen: true };
  });
}
