import type { EachBatchPayload, KafkaMessage } from './client.js';
import { sizeOf } from './records.js';

/** How long a batch that nobody takes from goes without a heartbeat, in ms. */
const HEARTBEAT_MS = 1_000;

/** Records taken from a batch and not yet known to have arrived. */
export interface TakenPart {
  readonly batch: HeldBatch;
  readonly records: readonly KafkaMessage[];
}

/**
 * One batch that kafkajs delivered, held inside its handler until requests have taken all of it: a handler that does
 * not return is what keeps kafkajs from fetching more.
 */
export class HeldBatch {
  private next = 0;
  private done: () => void = () => {};
  private readonly ended: Promise<void>;
  isOver = false;

  constructor(private readonly payload: EachBatchPayload) {
    this.ended = new Promise((resolve) => {
      this.done = () => {
        this.isOver = true;
        resolve();
      };
    });
  }

  get topic(): string {
    return this.payload.batch.topic;
  }

  get partition(): number {
    return this.payload.batch.partition;
  }

  /** The next records, up to the limits but at least one if any is left. */
  take(maxRecords: number, maxBytes: number): KafkaMessage[] {
    const { messages } = this.payload.batch;
    const taken: KafkaMessage[] = [];
    for (let bytes = 0; this.next < messages.length && taken.length < maxRecords; this.next++) {
      const record = messages[this.next] as KafkaMessage;
      bytes += sizeOf(record);
      if (taken.length > 0 && bytes > maxBytes) break;
      taken.push(record);
    }
    return taken;
  }

  putBack(records: readonly KafkaMessage[]): void {
    this.next -= records.length;
  }

  /** The records arrived: kafkajs goes on behind them, and fetches more once all of the batch has. */
  arrived(records: readonly KafkaMessage[]): void {
    const last = records.at(-1);
    if (last !== undefined && !this.isOver) this.payload.resolveOffset(last.offset);
    const { messages } = this.payload.batch;
    if (this.next === messages.length) this.done();
  }

  /** Lets the handler return with whatever is left: it will be read again from the committed offset. */
  release(): void {
    this.done();
  }

  /** Returns when the batch is over. @throws what a heartbeat throws, such as a rebalance */
  async hold(): Promise<void> {
    while (!this.isOver && this.payload.isRunning() && !this.payload.isStale()) {
      await this.endedWithin(HEARTBEAT_MS);
      if (!this.isOver) await this.payload.heartbeat();
    }
  }

  private async endedWithin(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const tick = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    await Promise.race([this.ended, tick]);
    clearTimeout(timer);
  }
}
