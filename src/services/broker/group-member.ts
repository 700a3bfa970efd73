import type { Logger } from '../../lib/logger.js';
import type { Consumer, EachBatchPayload } from './client.js';
import { kafkaType } from './errors.js';
import { HeldBatch, type TakenPart } from './held-batch.js';
import { toMessage } from './records.js';
import type { Message } from './schemas.js';

/** A held batch occupies one; with more partitions than that, the rest of a fetch waits for its turn. They cost little. */
const WORKERS = 256;
/** A final or hurried commit gets so long, in ms. */
const COMMIT_MS = 2_000;

export interface MemberOptions {
  readonly consumer: Consumer;
  readonly topics: readonly string[];
  readonly fromBeginning: boolean;
  /** `undefined`: positions are committed on request only. */
  readonly commitIntervalMs: number | undefined;
  /** Without a sign of life for so long the consumer counts as dead, in ms. */
  readonly silenceMs: number;
  readonly log: Logger;
  readonly now: () => number;
}

/** Records handed out together; exactly one of the two is called. */
export interface Delivery {
  readonly messages: Message[];
  arrived(): void;
  putBack(): void;
}

export interface TopicPartitionOffset {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

/** One life of one consumer in its group: from joining until it leaves or dies. It is not revived; a new one is made. */
export class GroupMember {
  /** Topic -> partitions; empty until joined. */
  assignment: ReadonlyMap<string, readonly number[]> = new Map();
  state: 'joining' | 'joined' | 'dead' | 'closed' = 'joining';
  /** Why it died. */
  failure: unknown;
  private readonly batches: HeldBatch[] = [];
  /** Delivered and not committed: `partition topic` -> the next offset to read. */
  private readonly uncommitted = new Map<string, TopicPartitionOffset>();
  private readonly started: Promise<void>;
  private waiters = new Set<() => void>();
  private commitTimer: NodeJS.Timeout | undefined;
  private commitsInTurn: Promise<void> = Promise.resolve();
  private lastSign: number;

  constructor(private readonly options: MemberOptions) {
    this.lastSign = options.now();
    this.listen();
    this.started = this.start();
    if (options.commitIntervalMs !== undefined) {
      this.commitTimer = setInterval(
        () => void this.commitDelivered().catch(() => {}),
        options.commitIntervalMs,
      );
      this.commitTimer.unref();
    }
  }

  /** Dead, or so silent that kafkajs must have lost it without a word. */
  get isLost(): boolean {
    if (this.state === 'dead' || this.state === 'closed') return true;
    // while it joins, the broker rightly keeps it waiting, and kafkajs has a timeout of its own
    return this.state === 'joined' && this.options.now() - this.lastSign > this.options.silenceMs;
  }

  /** What is there now, up to the limits; `undefined` when nothing is. */
  take(maxRecords: number, maxBytes: number): Delivery | undefined {
    const parts: TakenPart[] = [];
    let records = maxRecords;
    let bytes = maxBytes;
    for (const batch of this.batches) {
      if (records <= 0 || bytes <= 0 || batch.isOver) continue;
      const taken = batch.take(records, bytes);
      if (taken.length === 0) continue;
      parts.push({ batch, records: taken });
      records -= taken.length;
      bytes -= taken.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + (value?.length ?? 0), 0);
    }
    if (parts.length === 0) return undefined;
    // the next reply begins with another partition
    this.batches.push(...this.batches.splice(0, 1));
    return {
      messages: parts.flatMap(({ batch, records }) =>
        records.map((record) => toMessage(batch.topic, batch.partition, record)),
      ),
      arrived: () => this.arrived(parts),
      putBack: () => {
        for (const { batch, records } of parts) batch.putBack(records);
        this.wake();
      },
    };
  }

  /** Resolves at the next change: records, a join, death, or `signal`. */
  change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener('abort', wake);
        this.waiters.delete(wake);
        resolve();
      };
      if (signal.aborted) return resolve();
      this.waiters.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  /** Commits what was delivered, of the partitions that are still this member's. */
  commitDelivered(): Promise<void> {
    const commit = this.commitsInTurn.then(async () => {
      if (this.state !== 'joined') return;
      const positions = [...this.uncommitted].filter(([, position]) => this.isAssigned(position));
      if (positions.length === 0) return;
      await this.options.consumer.commitOffsets(
        positions.map(([, { topic, partition, offset }]) => ({ topic, partition, offset: String(offset) })),
      );
      // kafkajs resolves without having committed when its consumer has just stopped
      if ((this.state as string) !== 'joined') return;
      for (const [key, position] of positions) {
        if (this.uncommitted.get(key) === position) this.uncommitted.delete(key);
      }
    });
    this.commitsInTurn = commit.catch((error: unknown) => {
      this.options.log.debug({ err: error }, 'commit failed, the next one repeats it');
    });
    return commit;
  }

  /**
   * Commits exactly these offsets: the next ones to be read after a restart.
   * @throws what kafkajs throws, such as a rebalance
   */
  async commit(positions: readonly TopicPartitionOffset[]): Promise<void> {
    await this.options.consumer.commitOffsets(
      positions.map(({ topic, partition, offset }) => ({ topic, partition, offset: String(offset) })),
    );
    if (this.state !== 'joined') throw new Error('the consumer ended meanwhile');
    for (const { topic, partition } of positions) this.uncommitted.delete(`${partition} ${topic}`);
  }

  /** Commits (where commits are automatic), leaves the group, disconnects. */
  async close(): Promise<void> {
    if (this.state === 'closed') return;
    clearInterval(this.commitTimer);
    if (this.options.commitIntervalMs !== undefined) await within(COMMIT_MS, this.commitDelivered());
    this.state = 'closed';
    this.releaseAll();
    this.wake();
    // kafkajs forgets to stop a consumer that is told to while it joins
    await this.started;
    await this.options.consumer.disconnect().catch(() => {});
  }

  private async start(): Promise<void> {
    const { consumer, topics, fromBeginning } = this.options;
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: [...topics], fromBeginning });
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: WORKERS,
        eachBatch: (payload) => this.hold(payload),
      });
    } catch (error) {
      this.die(error);
      await consumer.disconnect().catch(() => {});
    }
  }

  private listen(): void {
    const { consumer, now } = this.options;
    const { GROUP_JOIN, CRASH, FETCH, HEARTBEAT, REBALANCING } = consumer.events;
    consumer.on(GROUP_JOIN, ({ payload }) => {
      // what was delivered before and not committed is read again from here
      this.uncommitted.clear();
      this.assignment = new Map(Object.entries(payload.memberAssignment));
      if (this.state === 'joining') this.state = 'joined';
      this.lastSign = now();
      this.wake();
    });
    consumer.on(REBALANCING, () => {
      if (this.state === 'joined') this.state = 'joining';
      this.lastSign = now();
    });
    const alive = () => {
      this.lastSign = now();
    };
    consumer.on(FETCH, alive);
    consumer.on(HEARTBEAT, alive);
    consumer.on(CRASH, ({ payload }) => this.die(payload.error));
  }

  private async hold(payload: EachBatchPayload): Promise<void> {
    const batch = new HeldBatch(payload);
    this.batches.push(batch);
    this.wake();
    try {
      await batch.hold();
    } catch (error) {
      // the group can only be joined again when every handler has returned
      const rebalances = kafkaType(error) === 'REBALANCE_IN_PROGRESS';
      if (rebalances && this.options.commitIntervalMs !== undefined)
        await within(COMMIT_MS, this.commitDelivered());
      this.releaseAll();
      throw error;
    } finally {
      batch.release();
      this.batches.splice(this.batches.indexOf(batch), 1);
    }
  }

  private arrived(parts: readonly TakenPart[]): void {
    for (const { batch, records } of parts) {
      const { topic, partition, isOver } = batch;
      // a batch that was released meanwhile belongs to an earlier membership: it is read again
      if (isOver) continue;
      const offset = Number(records.at(-1)?.offset) + 1;
      this.uncommitted.set(`${partition} ${topic}`, { topic, partition, offset });
      batch.arrived(records);
    }
  }

  isAssigned({ topic, partition }: { topic: string; partition: number }): boolean {
    return this.assignment.get(topic)?.includes(partition) === true;
  }

  private die(error: unknown): void {
    if (this.state === 'closed' || this.state === 'dead') return;
    this.state = 'dead';
    this.failure = error;
    clearInterval(this.commitTimer);
    this.releaseAll();
    this.wake();
  }

  private releaseAll(): void {
    for (const batch of this.batches) batch.release();
  }

  private wake(): void {
    for (const wake of [...this.waiters]) wake();
  }
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work.catch(() => {}), late]);
  clearTimeout(timer);
}
