import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { Comparison } from '../score.js';
import type { IndexShape } from '../statements/index-shape.js';
import { anyManyEqualText, leaveOutText } from '../statements/repeated-statements.js';

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

/** Records that were there before upserts looked for equal ones leave the graph that is about to be built. */
export async function leaveOutRepeated(
  connection: Queryable,
  shape: IndexShape,
  dense: Comparison,
  namespaceId: number,
): Promise<void> {
  if ((await connection.query(anyManyEqualText(shape, dense), [namespaceId])).rowCount === 0) return;
  await connection.query('begin');
  try {
    // nobody writes meanwhile
    await connection.query(`select from ${shape.namespaces} where id = $1 for no key update`, [namespaceId]);
    await connection.query(leaveOutText(shape, dense), [namespaceId]);
    await connection.query('commit');
  } catch (error) {
    await connection.query('rollback');
    throw error;
  }
}
