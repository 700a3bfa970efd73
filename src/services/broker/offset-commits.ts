import type { Logger } from '../../lib/logger.js';
import type { Consumer } from './client.js';

export interface TopicPartitionOffset {
  readonly topic: string;
  readonly partition: number;
  /** The next offset to read. */
  readonly offset: number;
}

export interface OffsetCommitsOptions {
  readonly consumer: Consumer;
  /** kafkajs resolves a commit without having committed when its consumer has stopped: asked before and after. */
  readonly isJoined: () => boolean;
  /** The broker takes commits for partitions of others: asked before. */
  readonly isAssigned: (partition: { topic: string; partition: number }) => boolean;
  readonly log: Logger;
}

/** What one consumer delivered and has not committed yet. */
export class OffsetCommits {
  private readonly uncommitted = new Map<string, TopicPartitionOffset>();
  private lastInTurn: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: OffsetCommitsOptions) {}

  /** Commits every `intervalMs` what was delivered meanwhile. */
  repeat(intervalMs: number): void {
    this.timer = setInterval(() => {
      // what could not be committed is committed with the next
      if (this.uncommitted.size > 0 && this.options.isJoined()) void this.commitDelivered().catch(() => {});
    }, intervalMs);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  delivered(position: TopicPartitionOffset): void {
    this.uncommitted.set(keyOf(position), position);
  }

  /** Everything not committed is read again. */
  forget(): void {
    this.uncommitted.clear();
  }

  /** Commits what was delivered of the partitions that are still assigned. @throws what kafkajs throws */
  commitDelivered(): Promise<void> {
    return this.inTurn(async () => {
      const positions = [...this.uncommitted.values()].filter(this.options.isAssigned);
      if (positions.length > 0) await this.send(positions);
    });
  }

  /** Commits exactly these. @throws what kafkajs throws, such as a rebalance */
  commit(positions: readonly TopicPartitionOffset[]): Promise<void> {
    return this.inTurn(async () => {
      await this.send(positions);
      // a later commit of what was delivered must not undo this one
      for (const position of positions) this.uncommitted.delete(keyOf(position));
    });
  }

  private inTurn(commit: () => Promise<void>): Promise<void> {
    const mine = this.lastInTurn.then(commit);
    this.lastInTurn = mine.catch((err: unknown) => {
      this.options.log.debug({ err }, 'offsets could not be committed');
    });
    return mine;
  }

  private async send(positions: readonly TopicPartitionOffset[]): Promise<void> {
    const { consumer, isJoined } = this.options;
    const offsets = positions.map(({ topic, partition, offset }) => ({
      topic,
      partition,
      offset: String(offset),
    }));
    if (isJoined()) await consumer.commitOffsets(offsets);
    if (!isJoined()) throw new Error('the consumer left its group meanwhile');
    for (const position of positions) {
      if (this.uncommitted.get(keyOf(position)) === position) this.uncommitted.delete(keyOf(position));
    }
  }
}

function keyOf({ topic, partition }: TopicPartitionOffset): string {
  return `${partition} ${topic}`;
}
