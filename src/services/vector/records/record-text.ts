import type { RecordRow } from '../statements/index-shape.js';

/** A record as JSON text. What Postgres printed as JSON is spliced in as it is. */
export function recordText(row: RecordRow, score?: string): string {
  let text = `{"id":${JSON.stringify(row.id)}`;
  if (score !== undefined) text += `,"score":${score}`;
  if (typeof row.vector === 'string') text += `,"vector":${row.vector}`;
  if (typeof row.sparse_indices === 'string')
    text += `,"sparseVector":{"indices":${row.sparse_indices},"values":${row.sparse_values}}`;
  if (typeof row.metadata === 'string') text += `,"metadata":${row.metadata}`;
  if (typeof row.data === 'string') text += `,"data":${JSON.stringify(row.data)}`;
  return `${text}}`;
}
