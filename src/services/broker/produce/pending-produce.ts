import { HttpError } from '../../../http/errors.js';
import type { RecordToWrite } from '../records/record-encoder.js';
import type { Metadata } from '../schemas.js';
import type { Outgoing } from './produce-queue.js';

/** Who waits for an answer, or no longer does. */
export interface Asker {
  readonly isOver: boolean;
  readonly principal: { readonly name: string };
}

/** What became of the records of one request; settled when all of them are. */
export class PendingProduce {
  readonly done: Promise<Metadata[]>;
  private readonly written: (Metadata | undefined)[];
  private left: number;
  private firstFailed = Number.POSITIVE_INFINITY;
  private error: Error | undefined;
  private settle: () => void = () => {};

  constructor(
    count: number,
    readonly asker: Asker,
    readonly giveUpAt: number,
  ) {
    this.left = count;
    this.written = new Array<Metadata | undefined>(count);
    this.done = new Promise((resolve, reject) => {
      this.settle = () => {
        if (this.error === undefined) resolve(this.written as Metadata[]);
        else reject(this.failure(this.error));
      };
    });
  }

  succeeded(index: number, metadata: Metadata): void {
    this.written[index] = metadata;
    if (--this.left === 0) this.settle();
  }

  failed(index: number, error: Error): void {
    if (index < this.firstFailed) {
      this.firstFailed = index;
      this.error = error;
    }
    if (--this.left === 0) this.settle();
  }

  /** The first failure; says how many of the records were written all the same. Those that Kafka left unanswered may be, too. */
  private failure(error: Error): Error {
    const { length } = this.written;
    if (length === 1 || !(error instanceof HttpError)) return error;
    const written = this.written.filter((one) => one !== undefined).length;
    const told = `Record ${this.firstFailed}: ${error.message} ${written} of the ${length} records are known to be written.`;
    return new HttpError(error.code, told, { cause: error.cause });
  }
}

/** One record of a request. */
export class PendingRecord implements Outgoing {
  misses = 0;

  constructor(
    private readonly request: PendingProduce,
    private readonly index: number,
    readonly topic: string,
    readonly partition: number,
    readonly record: RecordToWrite,
    readonly bytes: number,
  ) {}

  get owner(): string {
    return this.request.asker.principal.name;
  }

  get giveUpAt(): number {
    return this.request.giveUpAt;
  }

  isCancelled(): boolean {
    if (!this.request.asker.isOver) return false;
    this.fail(new HttpError('client_gone'));
    return true;
  }

  succeed(offset: number, appendTime: number | undefined): void {
    const { topic, partition, record } = this;
    this.request.succeeded(this.index, {
      topic,
      partition,
      offset,
      timestamp: appendTime ?? record.timestamp,
    });
  }

  fail(error: Error): void {
    this.request.failed(this.index, error);
  }
}
