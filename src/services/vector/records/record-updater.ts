import { HttpError } from '../../../http/errors.js';
import type { Queryable } from '../../../lib/postgres/postgres.js';
import { translated } from '../errors.js';
import type { IndexParts } from '../index-parts.js';
import type { Metadata, UpdateBody } from '../schemas/records.js';
import type { IndexShape } from '../statements/index-shape.js';
import {
  metadataText as metadataSelectText,
  type UpdatedPart,
  updateText,
} from '../statements/write-statements.js';
import { packOne } from './components.js';
import { mergePatch } from './merge-patch.js';
import { metadataText } from './metadata.js';
import { addPostings, dropPostings, lockNamespace } from './namespace-lock.js';
import { arrayText, dataText, isAbsent, postingsOf } from './record-batch.js';
import { type SparseVector, sparseVectorOf } from './sparse-vector.js';

/** Changes parts of one record. */
export class RecordUpdater {
  constructor(private readonly parts: IndexParts) {}

  /** @returns whether the record was there */
  async update(namespace: string, body: UpdateBody, signal: AbortSignal): Promise<boolean> {
    const { database, shape } = this.parts;
    const change = this.changeOf(body);
    return translated(() =>
      database.within(signal, 'write').transaction(async (connection) => {
        const locked = await lockNamespace(this.parts, connection, namespace);
        if (locked === undefined) return false;
        const metadata = await this.newMetadata(connection, locked.id, body);
        if (metadata === undefined) return false;
        const { sparse } = change;
        if (sparse !== undefined) await dropPostings(this.parts, connection, locked.id, [body.id]);
        const parts: UpdatedPart[] = [...change.parts, ...(metadata === null ? [] : (['metadata'] as const))];
        const values = [...change.values, ...(metadata === null ? [] : [metadata])];
        const update = this.parts.cache.get(`update ${parts.join(' ')}`, () => updateText(shape, parts));
        const { rowCount } = await connection.query(
          update.text,
          [locked.id, body.id, ...values],
          update.name,
        );
        if (sparse !== undefined && rowCount > 0)
          await addPostings(this.parts, connection, locked.id, [body.id], postingsOf([sparse]));
        return rowCount > 0;
      }),
    );
  }

  /** Everything of an update but its metadata, checked. @throws HttpError */
  private changeOf(body: UpdateBody): {
    parts: UpdatedPart[];
    values: unknown[];
    sparse: SparseVector | undefined;
  } {
    const { shape, rules } = this.parts;
    const parts: UpdatedPart[] = [];
    const values: unknown[] = [];
    checkParts(body, shape);
    if (!isAbsent(body.vector)) {
      parts.push('vector');
      values.push(packOne(body.vector, rules.components, 'body.vector'));
    }
    const sparse = isAbsent(body.sparseVector)
      ? undefined
      : sparseVectorOf(body.sparseVector, 'body.sparseVector');
    if (sparse !== undefined) {
      parts.push('sparse');
      values.push(arrayText(sparse.indices), arrayText(sparse.values));
    }
    if (!isAbsent(body.data)) {
      parts.push('data');
      values.push(dataText(body.data, rules.limits.maxDataBytes, 'body.data'));
    }
    if (parts.length === 0 && isAbsent(body.metadata))
      throw new HttpError('invalid_request', 'body: expected something to update beside the id');
    return { parts, values, sparse };
  }

  /** JSON text, null when it stays as it is, undefined when there is no such record. */
  private async newMetadata(
    connection: Queryable,
    namespaceId: number,
    { id, metadata, metadataUpdateMode }: UpdateBody,
  ): Promise<string | null | undefined> {
    if (isAbsent(metadata)) return null;
    const { rules, shape } = this.parts;
    const textOf = (value: Metadata) => metadataText(value, rules.limits.maxMetadataBytes, 'body.metadata');
    // checked before anything is merged, where depth could be trouble
    const given = textOf(metadata);
    if (metadataUpdateMode === 'OVERWRITE') return given;
    const { rows } = await connection.query<{ metadata: string }>(metadataSelectText(shape), [
      namespaceId,
      id,
    ]);
    const old = rows[0];
    return old === undefined ? undefined : textOf(mergePatch(JSON.parse(old.metadata), metadata) as Metadata);
  }
}

function checkParts({ vector, sparseVector }: UpdateBody, { dense, sparse }: IndexShape): void {
  const [hasDense, hasSparse] = [!isAbsent(vector), !isAbsent(sparseVector)];
  if (dense === undefined && hasDense)
    throw new HttpError('unprocessable', 'body.vector: this index is sparse: it takes no vector');
  if (!sparse && hasSparse)
    throw new HttpError('unprocessable', 'body.sparseVector: this index is dense: it takes no sparseVector');
  if (dense !== undefined && sparse && hasDense !== hasSparse)
    throw new HttpError(
      'unprocessable',
      'body: a hybrid index takes vector and sparseVector together or none',
    );
}
