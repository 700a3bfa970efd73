import type { RecordCursor } from './record-batches.js';
import type { Message } from './schemas.js';

/** One partition that a member of a group has: what was read of it and not handed out, and where to read on. */
export class AssignedPartition {
  /** Nobody may be given anything of it any more. */
  isLost = false;
  /** End of the log when it was last read. */
  end: number | undefined;
  private readonly chunks: RecordCursor[] = [];
  /** Handed out in vain. */
  private returned: Message[] = [];
  /** Where to read on when what is held is dropped. */
  private handedOut: number;

  constructor(
    readonly topic: string,
    readonly partition: number,
    /** Next offset to ask the broker for. */
    public readFrom: number,
  ) {
    this.handedOut = readFrom;
  }

  get isEmpty(): boolean {
    return this.returned.length === 0 && this.chunks.length === 0;
  }

  /** Records between what was handed out and the end of the log as it was last seen. */
  get lag(): number {
    return this.end === undefined ? 0 : Math.max(0, this.end - this.handedOut);
  }

  /** Of what is held, without what was handed out in vain. */
  get bytes(): number {
    return this.chunks.reduce((sum, chunk) => sum + chunk.bytes, 0);
  }

  /** What was read of `from`; nothing when that is not what comes next any more. */
  add(from: number, records: RecordCursor | undefined, next: number): void {
    if (from !== this.readFrom || this.isLost) return;
    if (records !== undefined) this.chunks.push(records);
    this.readFrom = next;
  }

  moveTo(offset: number): void {
    this.chunks.length = 0;
    this.readFrom = offset;
    this.handedOut = offset;
  }

  /** Gives the memory of what is held back; it is read again. */
  drop(): void {
    if (this.chunks.length === 0) return;
    this.chunks.length = 0;
    this.readFrom = this.handedOut;
  }

  /** The next record and how many bytes it had (0 where that was told before). */
  next(): { message: Message; bytes: number } | undefined {
    const returned = this.returned.shift();
    if (returned !== undefined) return { message: returned, bytes: returned.value.length };
    for (let [chunk] = this.chunks; chunk !== undefined; [chunk] = this.chunks) {
      const record = chunk.next();
      if (record !== undefined) {
        this.handedOut = record.message.offset + 1;
        return record;
      }
      this.chunks.shift();
    }
    return undefined;
  }

  putBack(messages: readonly Message[]): void {
    this.returned = [...messages, ...this.returned];
  }
}
