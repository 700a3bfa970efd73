import { HttpError, toHttpError } from '../../../http/errors.js';
import { type VectorRecord, vectorRecord } from '../schemas/records.js';
import { parseWithVectors } from './lift-vectors.js';
import { type Line, linesOf } from './ndjson.js';
import type { RecordWriter } from './record-writer.js';

/** Records and bytes that are stored in one transaction: what is held in memory, and what is written again if it fails. */
const BATCH_RECORDS = 1_000;
const BATCH_BYTES = 8 * 1024 * 1024;

export interface ImportLimits {
  readonly maxLineBytes: number;
}

interface Pending {
  records: VectorRecord[];
  /** Number of each record's line. */
  lines: number[];
  bytes: number;
}

/**
 * Stores a record a line, however many there are: the body is read only as fast as batches are committed.
 * @throws HttpError whose message names the line and how many lines before it are stored: all that precede a faulty one
 */
export async function importRecords(
  writer: RecordWriter,
  namespace: string,
  body: AsyncIterable<Buffer>,
  { maxLineBytes }: ImportLimits,
  signal: AbortSignal,
): Promise<void> {
  const batch = new ImportBatch(writer, namespace, signal);
  // the line that is being read
  let number = 1;
  try {
    for await (const line of linesOf(body, maxLineBytes)) {
      number = line.number;
      const record = await recordOf(line);
      if (record !== undefined) batch.add(record, line);
      if (batch.isFull) await batch.store();
      number++;
    }
  } catch (error) {
    // what was stored already says so itself
    if (error instanceof ImportError) throw error;
    await batch.store();
    throw stoppedAt(error, batch.stored, `line ${number}: `);
  }
  await batch.store();
}

/** An HttpError that already tells where the import stopped. */
class ImportError extends HttpError {}

class ImportBatch {
  private pending: Pending = { records: [], lines: [], bytes: 0 };
  /** Number of the last line that is stored. */
  stored = 0;

  constructor(
    private readonly writer: RecordWriter,
    private readonly namespace: string,
    private readonly signal: AbortSignal,
  ) {}

  get isFull(): boolean {
    return this.pending.records.length >= BATCH_RECORDS || this.pending.bytes >= BATCH_BYTES;
  }

  add(record: VectorRecord, { number, bytes }: Line): void {
    this.pending.records.push(record);
    this.pending.lines.push(number);
    this.pending.bytes += bytes.length;
  }

  /** Stores what is pending. When a record is refused, those before it are stored all the same. */
  async store(): Promise<void> {
    const { records, lines } = this.pending;
    if (records.length === 0) return;
    this.pending = { records: [], lines: [], bytes: 0 };
    const upsert = (part: readonly VectorRecord[]) =>
      this.writer.upsert(this.namespace, part, this.signal, (i) => `line ${lines[i]}`);
    try {
      await upsert(records);
      this.stored = lines.at(-1) as number;
    } catch (error) {
      const faulty = records.findIndex((record) => !this.writer.accepts(record));
      if (faulty < 0) throw stoppedAt(error, this.stored, '');
      if (faulty > 0) {
        await upsert(records.slice(0, faulty)).catch((cause: unknown) => {
          throw stoppedAt(cause, this.stored, '');
        });
        this.stored = lines[faulty - 1] as number;
      }
      throw stoppedAt(error, this.stored, namesLine(error) ? '' : `line ${lines[faulty]}: `);
    }
  }
}

async function recordOf(line: Line): Promise<VectorRecord | undefined> {
  const value = await lineValue(line);
  if (value === undefined) return undefined;
  const result = vectorRecord.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const place = issue === undefined || issue.path.length === 0 ? '' : `${issue.path.map(String).join('.')}: `;
  throw new HttpError('invalid_request', `${place}${issue?.message}`, { cause: result.error });
}

/** `undefined` when it is blank. @throws HttpError `invalid_json` */
async function lineValue({ bytes }: Line): Promise<unknown> {
  try {
    return await parseWithVectors(bytes);
  } catch (error) {
    const { code, message } = toHttpError(error);
    throw new HttpError(code, message.replace('The body is ', ''), { cause: error });
  }
}

function namesLine(error: unknown): boolean {
  return error instanceof HttpError && error.message.startsWith('line ');
}

function stoppedAt(error: unknown, stored: number, place: string): HttpError {
  const { code, message } = toHttpError(error);
  const kept = stored === 0 ? 'nothing is stored' : `the lines up to ${stored} are stored`;
  return new ImportError(code, `${place}${message} (${kept})`, { cause: error });
}
