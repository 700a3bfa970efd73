import type { HttpError } from '../../http/errors.js';
import type { AssignedPartition } from './assigned-partition.js';
import type { Position } from './fetch-call.js';
import { isStale, type LogReader, type ReadFailure } from './log-reader.js';
import type { Message } from './schemas.js';
import { pause } from './waits.js';

/** Records of one partition that were taken together. */
export interface TakenPart {
  readonly from: AssignedPartition;
  readonly messages: Message[];
}

/** Pause after a look that failed, in ms. */
const RETRY_MS = 100;
/** When less than this part of a reply's bytes is left, what comes next is read while the client has its reply. */
const READ_AHEAD = 2;
/** Least pause between two looks that found nothing, in ms: a gap in a compacted log must not become a busy loop. */
const LEAST_PAUSE_MS = 5;

export interface AssignedLogsOptions {
  readonly reader: LogReader;
  /** Where to go on when an offset is not in the log any more. @throws HttpError where that is an error */
  readonly reset: (partition: AssignedPartition) => Promise<number>;
}

/** The partitions that a member of a group has: read when somebody asks, and a little ahead. */
export class AssignedLogs {
  private partitions: AssignedPartition[] = [];
  private looking: Promise<void> | undefined;
  private error: HttpError | undefined;

  constructor(private readonly options: AssignedLogsOptions) {}

  /** Whether there is something to take. */
  get isReady(): boolean {
    return this.partitions.some((partition) => !partition.isEmpty);
  }

  get lag(): number {
    return this.partitions.reduce((sum, partition) => sum + partition.lag, 0);
  }

  private get bytes(): number {
    return this.partitions.reduce((sum, partition) => sum + partition.bytes, 0);
  }

  find(topic: string, partition: number): AssignedPartition | undefined {
    return this.partitions.find((one) => one.topic === topic && one.partition === partition);
  }

  /** From now on these; what is not among them any more is lost. */
  assign(partitions: readonly AssignedPartition[]): void {
    for (const partition of this.partitions) partition.isLost = !partitions.includes(partition);
    this.partitions = [...partitions];
    this.error = undefined;
  }

  /** What is there now, up to the limits but at least one record if there is any; empty when nothing is. */
  take(maxRecords: number, maxBytes: number): TakenPart[] {
    const parts: TakenPart[] = [];
    let recordsLeft = maxRecords;
    let bytesLeft = maxBytes;
    for (const from of this.partitions) {
      const messages: Message[] = [];
      while (recordsLeft > 0 && bytesLeft > 0) {
        const record = from.next();
        if (record === undefined) break;
        messages.push(record.message);
        recordsLeft -= 1;
        bytesLeft -= record.bytes;
      }
      if (messages.length > 0) parts.push({ from, messages });
    }
    // the next reply begins with another partition
    if (parts.length > 0) this.partitions.push(...this.partitions.splice(0, 1));
    if (parts.length > 0 && this.bytes < maxBytes / READ_AHEAD) void this.look().catch(() => {});
    return parts;
  }

  /** Resolves when there is something to take or `until` aborts. @throws HttpError where a partition cannot be read and no other has records */
  async fill(until: AbortSignal): Promise<void> {
    while (!until.aborted && !this.isReady) {
      await this.look();
      if (this.isReady || until.aborted) return;
      const { error } = this;
      this.error = undefined;
      if (error !== undefined) throw error;
      if (this.partitions.length === 0) return pause(LEAST_PAUSE_MS);
      await Promise.all([this.options.reader.wait(this.positions(), until), pause(LEAST_PAUSE_MS)]);
    }
  }

  /** Gives back the memory of what was read ahead. */
  drop(): void {
    for (const partition of this.partitions) partition.drop();
  }

  private positions(): (Position & { readonly of: AssignedPartition })[] {
    return this.partitions
      .filter((partition) => partition.isEmpty)
      .map((of) => ({ topic: of.topic, partition: of.partition, offset: of.readFrom, of }));
  }

  /** Reads what comes next of the partitions that have nothing left; callers at the same time share one look. */
  private look(): Promise<void> {
    this.looking ??= this.lookOnce().finally(() => {
      this.looking = undefined;
    });
    return this.looking;
  }

  private async lookOnce(): Promise<void> {
    const positions = this.positions();
    if (positions.length === 0) return;
    const results = await this.options.reader.look(positions);
    for (const position of positions) {
      const result = results.get(position);
      if (result === undefined) continue;
      if (result.end !== undefined) position.of.end = result.end;
      if (result.failure === undefined) position.of.add(position.offset, result.records, result.next);
      else
        await this.recover(position.of, result.failure).catch((error: HttpError) => {
          this.error = error;
        });
    }
  }

  private async recover(partition: AssignedPartition, failure: ReadFailure): Promise<void> {
    if (failure.type === 'OFFSET_OUT_OF_RANGE') partition.moveTo(await this.options.reset(partition));
    else if (isStale(failure) || failure.type === 'UNKNOWN_TOPIC_OR_PARTITION') {
      // its leader moves, or the topic is being deleted: other partitions go on
      await this.options.reader.refresh([{ ...partition, offset: 0 }]);
      await pause(RETRY_MS);
    } else throw failure.error;
  }
}
