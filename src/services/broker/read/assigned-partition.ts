import type { MessagesJson } from '../records/messages-json.js';
import type { RecordCursor } from '../records/record-cursor.js';

/** One partition that a member of a group has: what was read of it and not handed out, and where to read on. */
export class AssignedPartition {
  /** Nobody may be given anything of it any more. */
  isLost = false;
  /** End of the log when it was last read. */
  end: number | undefined;
  private readonly chunks: RecordCursor[] = [];
  /** Records of it are on their way to a client, or wait for its confirmation. */
  isOut = false;
  /**
   * Offset behind the last record that was handed out, and behind what follows that and is not for readers (control records,
   * aborted transactions): where to read on when what is held is dropped.
   */
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
    return this.chunks.length === 0;
  }

  get nextOffset(): number {
    return this.handedOut;
  }

  /** Whether the log is known to go on behind what was read of it. */
  get hasMore(): boolean {
    return this.end !== undefined && this.readFrom < this.end;
  }

  /** Records between what was handed out and the end of the log as it was last seen. */
  get lag(): number {
    return this.end === undefined ? 0 : Math.max(0, this.end - this.handedOut);
  }

  /** Of what is held. */
  get bytes(): number {
    let bytes = 0;
    for (const chunk of this.chunks) bytes += chunk.bytes;
    return bytes;
  }

  /** What was read of `from`; nothing when that is not what comes next any more. */
  add(from: number, records: RecordCursor | undefined, next: number): void {
    if (from !== this.readFrom || this.isLost) return;
    if (records !== undefined) this.chunks.push(records);
    this.readFrom = next;
    if (this.isEmpty) this.handedOut = next;
  }

  /** Reads on there, whatever was handed out. */
  moveTo(offset: number): void {
    this.chunks.length = 0;
    this.readFrom = offset;
    this.handedOut = offset;
  }

  /** Gives the memory of what is held back; it is read again. */
  drop(): void {
    if (this.chunks.length > 0) this.moveTo(this.handedOut);
  }

  /** Hands out what has room. @returns whether nothing is left that was read */
  *writeTo(json: MessagesJson): Generator<void, boolean> {
    for (let [chunk] = this.chunks; chunk !== undefined; [chunk] = this.chunks) {
      const isDone = yield* chunk.writeTo(json);
      // it was moved meanwhile: what is written comes again
      if (this.chunks[0] !== chunk) return false;
      this.handedOut = Math.max(this.handedOut, chunk.nextOffset);
      if (!isDone) return false;
      this.chunks.shift();
    }
    this.handedOut = this.readFrom;
    return true;
  }
}
