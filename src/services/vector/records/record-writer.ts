import { translated } from '../errors.js';
import { filterJsonpath } from '../filter/filter-jsonpath.js';
import { parseFilter } from '../filter/parse-filter.js';
import type { IndexParts } from '../index-parts.js';
import type { DeleteBody } from '../schemas/reads.js';
import type { VectorRecord } from '../schemas/records.js';
import { EXACT_RECORDS } from '../statements/dense-search.js';
import { Parameters } from '../statements/index-shape.js';
import { prefixCondition } from '../statements/read-statements.js';
import { deleteText, upsertText } from '../statements/write-statements.js';
import { addPostings, dropPostings, lockNamespace, lockOrCreateNamespace } from './namespace-lock.js';
import { recordBatch } from './record-batch.js';

const inBody = (i: number) => `body.${i}`;

/** Stores and deletes records. All writes into one namespace run one after the other. */
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

  /** @returns how many records were there and are deleted */
  async delete(namespace: string, selection: DeleteBody, signal: AbortSignal): Promise<number> {
    const { database, shape } = this.parts;
    // $1 is the namespace's id
    const parameters = new Parameters();
    parameters.add(undefined, 'int');
    const condition = deleteCondition(parameters, selection);
    return translated(() =>
      database.within(signal, 'write').transaction(async (connection) => {
        const locked = await lockNamespace(this.parts, connection, namespace);
        if (locked === undefined) return 0;
        const values = [locked.id, ...parameters.values.slice(1)];
        const { rows } = await connection.query<{ deleted: string }>(deleteText(shape, condition), values);
        return Number(rows[0]?.deleted ?? 0);
      }),
    );
  }
}

function deleteCondition(parameters: Parameters, { ids, prefix, filter }: DeleteBody): string {
  if (ids !== undefined) return `id = any(${parameters.add(ids, 'text[]')})`;
  if (prefix !== undefined) return prefixCondition(parameters, prefix);
  const jsonpath = filterJsonpath(parseFilter(filter as string));
  return `metadata @@ ${parameters.add(jsonpath, 'jsonpath')}`;
}
