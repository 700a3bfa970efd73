import type { HttpError } from '../../../http/errors.js';
import { sliced } from '../../../lib/slices.js';
import { pause, untilAborted } from '../kafka/waits.js';
import { MessagesJson, type ReplyForm } from '../records/messages-json.js';
import type { AssignedPartition } from './assigned-partition.js';
import type { Position } from './fetch-call.js';
import { isStale, type LogReader, type ReadFailure, type ReadResult } from './log-reader.js';

/** Records of one partition that were taken together. */
export interface TakenPart {
  readonly from: AssignedPartition;
  /** Offset of the first of them. */
  readonly begin: number;
  /** Offset behind the last of them, and behind what follows and is not for readers. */
  readonly end: number;
}

/** Records that were taken together. */
export interface Taken {
  readonly parts: readonly TakenPart[];
  readonly count: number;
  /** They as JSON. */
  readonly json: Buffer;
}

interface OwnPosition extends Position {
  readonly of: AssignedPartition;
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
  /** There was nothing for readers up to its next offset, and nothing of it is out. */
  readonly onPassed: (partition: AssignedPartition) => void;
}

/** The partitions that a member of a group has: read when somebody asks, and a little ahead. */
export class AssignedLogs {
  private partitions: AssignedPartition[] = [];
  private looking: Promise<void> | undefined;
  private error: HttpError | undefined;
  private isTaking = false;
  private asking: Promise<void> | undefined;

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

  /** What is there now, up to the limits but at least one record if there is any; `undefined` when nothing is. One at a time. */
  async take(form: ReplyForm): Promise<Taken | undefined> {
    if (!this.isReady) return undefined;
    this.isTaking = true;
    try {
      return await sliced(this.takeAll(form));
    } finally {
      this.isTaking = false;
    }
  }

  private *takeAll(form: ReplyForm): Generator<void, Taken | undefined> {
    const json = new MessagesJson(form);
    const begun: { from: AssignedPartition; begin: number }[] = [];
    try {
      for (const from of this.partitions) {
        if (from.isEmpty) continue;
        begun.push({ from, begin: from.nextOffset });
        from.isOut = true;
        if (!(yield* from.writeTo(json))) break;
      }
      if (json.count === 0) {
        for (const { from } of begun) this.passed(from);
        return undefined;
      }
      const text = yield* json.finish();
      const parts = begun.map((part) => ({ ...part, end: part.from.nextOffset }));
      // the next reply begins with another partition
      this.partitions.push(...this.partitions.splice(0, 1));
      if (this.bytes < form.maxBytes / READ_AHEAD) void this.look(this.ahead()).catch(() => {});
      return { parts, count: json.count, json: text };
    } catch (error) {
      putBack(begun);
      throw error;
    }
  }

  /** Nothing of it was for readers. */
  private passed(partition: AssignedPartition): void {
    partition.isOut = false;
    this.options.onPassed(partition);
  }

  /** Resolves when there is something to take or `until` aborts. @throws HttpError where a partition cannot be read and no other has records */
  async fill(until: AbortSignal): Promise<void> {
    while (!until.aborted && !this.isReady) {
      this.error = undefined;
      // a broker that hangs holds up the look, and nobody for longer than they wait
      await untilAborted(this.look(this.positions()), until);
      if (this.isReady || until.aborted) return;
      if (this.error !== undefined) throw this.error;
      if (this.partitions.length === 0) return pause(LEAST_PAUSE_MS);
      await Promise.all([this.options.reader.wait(this.positions(), until), pause(LEAST_PAUSE_MS)]);
    }
  }

  /** Gives back the memory of what was read ahead. */
  drop(): void {
    if (!this.isTaking) for (const partition of this.partitions) partition.drop();
  }

  private positions(): OwnPosition[] {
    return this.partitions.filter((partition) => partition.isEmpty).map(positionOf);
  }

  /** What comes next of the logs that go on, those first of which least is held: a reply's bytes go to the first. */
  private ahead(): OwnPosition[] {
    return this.partitions
      .filter((partition) => partition.hasMore)
      .sort((a, b) => a.bytes - b.bytes)
      .map(positionOf);
  }

  /** Reads what comes next at `positions`; callers at the same time share one look. */
  private look(positions: readonly OwnPosition[]): Promise<void> {
    this.looking ??= this.lookOnce(positions).finally(() => {
      this.looking = undefined;
    });
    return this.looking;
  }

  private async lookOnce(positions: readonly OwnPosition[]): Promise<void> {
    if (positions.length === 0) return;
    const results = await this.options.reader.look(positions);
    const failures: [AssignedPartition, ReadFailure][] = [];
    for (const position of positions) {
      const result = results.get(position);
      if (result === undefined) continue;
      if (result.end !== undefined) position.of.end = result.end;
      if (result.failure === undefined) this.add(position, result);
      else failures.push([position.of, result.failure]);
    }
    const moving: AssignedPartition[] = [];
    for (const [partition, failure] of failures) {
      if (failure.type === 'OFFSET_OUT_OF_RANGE') await this.moveToReset(partition);
      // its leader moves or dies, or the topic is being deleted: other partitions go on
      else if (isStale(failure) || failure.type === 'UNKNOWN_TOPIC_OR_PARTITION') moving.push(partition);
      else this.error = failure.error;
    }
    if (moving.length > 0) await this.findLeaders(moving);
  }

  private add({ of, offset }: OwnPosition, { records, next }: ReadResult): void {
    const before = of.nextOffset;
    of.add(offset, records, next);
    if (of.nextOffset > before && !of.isOut) this.options.onPassed(of);
  }

  private async moveToReset(partition: AssignedPartition): Promise<void> {
    try {
      partition.moveTo(await this.options.reset(partition));
    } catch (error) {
      this.error = error as HttpError;
    }
  }

  /** Asks who leads `partitions` now, one question at a time; waits for the answer where there is nothing else to take. */
  private async findLeaders(partitions: readonly AssignedPartition[]): Promise<void> {
    this.asking ??= this.options.reader
      .refresh(partitions.map((one) => ({ ...one, offset: 0 })))
      .catch((error: HttpError) => {
        this.error = error;
      })
      .then(() => pause(RETRY_MS))
      .finally(() => {
        this.asking = undefined;
      });
    if (!this.isReady) await this.asking;
  }
}

/** They come next again: read anew, because nothing says when. */
export function putBack(parts: readonly Pick<TakenPart, 'from' | 'begin'>[]): void {
  for (const { from, begin } of parts) {
    from.isOut = false;
    if (begin < from.nextOffset) from.moveTo(begin);
  }
}

function positionOf(of: AssignedPartition): OwnPosition {
  return { topic: of.topic, partition: of.partition, offset: of.readFrom, of };
}
