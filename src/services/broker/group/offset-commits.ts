import { HttpError } from '../../../http/errors.js';
import type { Logger } from '../../../lib/logger.js';
import type { ClusterCounters } from '../cluster-counters.js';
import { partitionKey, type TopicPartition } from '../kafka/partitions.js';
import type { Coordinators } from './coordinators.js';
import { commitOffsets, type Membership, type TopicPartitionOffset } from './group-offsets.js';

export interface OffsetCommitsOptions {
  readonly coordinators: Coordinators;
  readonly membership: () => Membership;
  readonly isJoined: () => boolean;
  /** The broker takes commits for partitions of others: asked before. */
  readonly isAssigned: (partition: TopicPartition) => boolean;
  readonly counters: ClusterCounters;
  readonly log: Logger;
}

/** What one consumer delivered and has not committed yet. */
export class OffsetCommits {
  private readonly uncommitted = new Map<string, TopicPartitionOffset>();
  /** Partitions that a client has committed itself since something of them was delivered. */
  private readonly chosen = new Set<string>();
  private lastInTurn: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private isSomethingLost = false;

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
    this.isSomethingLost = false;
    this.chosen.delete(partitionKey(position));
    this.uncommitted.set(partitionKey(position), position);
  }

  /** Nothing for readers lies before `position`: committed with the rest, unless the client has chosen where to go on. */
  passed(position: TopicPartitionOffset): void {
    const key = partitionKey(position);
    if (!this.chosen.has(key)) this.uncommitted.set(key, position);
  }

  /** What was delivered of other partitions than these is read again. */
  keepOnly(partitions: ReadonlySet<string>): void {
    for (const key of [...this.uncommitted.keys()]) {
      if (partitions.has(key)) continue;
      this.uncommitted.delete(key);
      this.isSomethingLost = true;
    }
  }

  /** Commits what was delivered of the partitions that are still assigned. @throws HttpError */
  commitDelivered(): Promise<void> {
    return this.inTurn(async () => {
      const positions = [...this.uncommitted.values()].filter(this.options.isAssigned);
      if (positions.length > 0) await this.send(positions);
      else if (this.isSomethingLost)
        throw new HttpError(
          'conflict',
          'Nothing was committed: the group rebalanced since the last delivery, which comes again.',
        );
    });
  }

  /** Commits exactly these. @throws HttpError, such as 503 for a rebalance */
  commit(positions: readonly TopicPartitionOffset[]): Promise<void> {
    return this.inTurn(async () => {
      await this.send(positions);
      // a later commit of what was delivered must not undo this one
      for (const key of positions.map(partitionKey)) {
        this.uncommitted.delete(key);
        this.chosen.add(key);
      }
    });
  }

  private inTurn(commit: () => Promise<void>): Promise<void> {
    const mine = this.lastInTurn.then(commit);
    this.lastInTurn = mine.catch((err: unknown) => {
      this.options.counters.failedCommits += 1;
      this.options.log.debug({ err }, 'offsets could not be committed');
    });
    return mine;
  }

  private async send(positions: readonly TopicPartitionOffset[]): Promise<void> {
    const { coordinators, membership } = this.options;
    await commitOffsets(coordinators, membership(), positions);
    for (const position of positions) {
      const key = partitionKey(position);
      if (this.uncommitted.get(key) === position) this.uncommitted.delete(key);
    }
  }
}
