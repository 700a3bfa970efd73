import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { Comparison } from '../score.js';
import type { IndexShape } from '../statements/index-shape.js';
import { LEFT_OUT_AT_ONCE, leaveOutText, manyEqualText } from '../statements/repeated-statements.js';

/** What keeps equal vectors out of a graph, beside the column `is_repeated` of the records: statements that make it. */
export function repeatedVectorsTexts(
  { records, repeated }: Pick<IndexShape, 'records' | 'repeated'>,
  { columnType, digest }: Pick<Comparison, 'columnType' | 'digest'>,
): string[] {
  return [
    `create index on ${records} (namespace_id, (${digest('vec')}), is_repeated, row)`,
    `create table ${repeated} (
      namespace_id int not null, digest uuid not null, vec ${columnType} not null, primary key (namespace_id, digest))`,
  ];
}

/** Vectors whose records are looked for in one statement. */
const DIGESTS_AT_ONCE = 500;

/**
 * Records that were there before upserts looked for equal ones leave the graph that is about to be built, in steps between which
 * others write.
 */
export async function leaveOutRepeated(
  connection: Queryable,
  shape: IndexShape,
  dense: Comparison,
  namespaceId: number,
): Promise<void> {
  const many = await connection.query<{ digest: string }>(manyEqualText(shape, dense), [namespaceId]);
  const digests = many.rows.map(({ digest }) => digest);
  for (let i = 0; i < digests.length; i += DIGESTS_AT_ONCE) {
    const some = digests.slice(i, i + DIGESTS_AT_ONCE);
    while ((await leaveOut(connection, shape, dense, [namespaceId, some])) === LEFT_OUT_AT_ONCE);
  }
}

/** @returns how many records have left */
async function leaveOut(
  connection: Queryable,
  shape: IndexShape,
  dense: Comparison,
  [namespaceId, digests]: [number, readonly string[]],
): Promise<number> {
  await connection.query('begin');
  try {
    // nobody writes meanwhile
    await connection.query(`select from ${shape.namespaces} where id = $1 for no key update`, [namespaceId]);
    // each record is found by its digest, whatever the statistics say
    await connection.query('set local enable_seqscan = off');
    const { rowCount } = await connection.query(leaveOutText(shape, dense), [namespaceId, digests]);
    await connection.query('commit');
    return rowCount;
  } catch (error) {
    await connection.query('rollback');
    throw error;
  }
}
