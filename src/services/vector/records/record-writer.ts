import type { Queryable } from '../../../lib/postgres/postgres.js';
import { sliced, wholly } from '../../../lib/slices.js';
import { translated } from '../errors.js';
import type { IndexParts } from '../index-parts.js';
import type { VectorRecord } from '../schemas/records.js';
import { EXACT_RECORDS } from '../statements/dense-search.js';
import { upsertText } from '../statements/write-statements.js';
import { addPostings, dropPostings, type LockedNamespace, lockOrCreateNamespace } from './namespace-lock.js';
import { type RecordBatch, recordBatches } from './record-batch.js';

const inBody = (i: number) => `body.${i}`;

/** Stores records. All writes into one namespace run one after the other. */
export class RecordWriter {
  constructor(
    private readonly parts: IndexParts,
    /** A namespace has become large enough for an HNSW index. */
    private readonly onLarge: () => void,
  ) {}

  /**
   * Stores every record or none; one that exists is replaced as a whole. Of several with one id the last wins.
   * Resolves when they are committed, so that a query that starts then sees them.
   * @param place where a record stands in the request, for the error
   */
  async upsert(
    namespace: string,
    records: readonly VectorRecord[],
    signal: AbortSignal,
    place: (i: number) => string = inBody,
  ): Promise<void> {
    if (records.length === 0) return;
    const { database, rules } = this.parts;
    const packed = sliced(recordBatches(records, rules, place));
    const batches = packed instanceof Promise ? await packed : packed;
    const large = await translated(() =>
      database.within(signal, 'write').transaction(async (connection) => {
        let grown = false;
        for (const batch of batches) {
          // each batch numbers its records from where the one before has ended
          const locked = await lockOrCreateNamespace(this.parts, connection, namespace);
          grown = await this.store(connection, locked, batch);
        }
        return grown;
      }),
    );
    this.parts.counters.written += records.length;
    if (large) this.onLarge();
  }

  /** @returns whether the namespace has become large enough for an HNSW index and has none */
  private async store(
    connection: Queryable,
    { id, next_row, hnsw, graph_deferred }: LockedNamespace,
    { ids, columns, postings }: RecordBatch,
  ): Promise<boolean> {
    const { shape, cache } = this.parts;
    if (postings !== undefined) await dropPostings(this.parts, connection, id, ids);
    const upsert = cache.get('upsert', () => upsertText(shape));
    const { rows } = await connection.query<{ record_count: string }>(
      upsert.text,
      [id, next_row, ...columns],
      upsert.name,
    );
    if (postings !== undefined) await addPostings(this.parts, connection, id, ids, postings);
    return !hnsw && !graph_deferred && Number(rows[0]?.record_count ?? 0) > EXACT_RECORDS;
  }

  /** Whether a record alone could be stored. */
  accepts(record: VectorRecord): boolean {
    try {
      wholly(recordBatches([record], this.parts.rules, inBody));
      return true;
    } catch {
      return false;
    }
  }
}
