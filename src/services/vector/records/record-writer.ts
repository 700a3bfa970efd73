import { translated } from '../errors.js';
import type { IndexParts } from '../index-parts.js';
import type { VectorRecord } from '../schemas/records.js';
import { EXACT_RECORDS } from '../statements/dense-search.js';
import { upsertText } from '../statements/write-statements.js';
import { addPostings, dropPostings, lockOrCreateNamespace } from './namespace-lock.js';
import { recordBatch } from './record-batch.js';

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
    const { database, shape, rules, cache } = this.parts;
    const { ids, columns, postings } = recordBatch(records, rules, place);
    const large = await translated(() =>
      database.within(signal, 'write').transaction(async (connection) => {
        const locked = await lockOrCreateNamespace(this.parts, connection, namespace);
        if (postings !== undefined) await dropPostings(this.parts, connection, locked.id, ids);
        const upsert = cache.get('upsert', () => upsertText(shape));
        const { rows } = await connection.query<{ record_count: string }>(
          upsert.text,
          [locked.id, locked.next_row, ...columns],
          upsert.name,
        );
        if (postings !== undefined) await addPostings(this.parts, connection, locked.id, ids, postings);
        return !locked.hnsw && Number(rows[0]?.record_count ?? 0) > EXACT_RECORDS;
      }),
    );
    if (large) this.onLarge();
  }

  /** Whether a record alone could be stored. */
  accepts(record: VectorRecord): boolean {
    try {
      recordBatch([record], this.parts.rules, inBody);
      return true;
    } catch {
      return false;
    }
  }
}
