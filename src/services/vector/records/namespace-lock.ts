import { HttpError } from '../../../http/errors.js';
import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { IndexParts } from '../index-parts.js';
import { createNamespaceText, lockNamespaceText } from '../statements/namespace-statements.js';
import { addPostingsText, dropPostingsText } from '../statements/write-statements.js';

export interface LockedNamespace {
  readonly id: number;
  readonly next_row: string;
  /** It has an HNSW index. */
  readonly hnsw: boolean;
  /** It gets one later. */
  readonly graph_deferred: boolean;
}

/** A namespace may be deleted between its making and its lock, but not again and again. */
const LOCK_TRIES = 5;

/** Locks a namespace until the transaction of `connection` ends; `undefined` when there is none. */
export async function lockNamespace(
  { cache, shape }: IndexParts,
  connection: Queryable,
  namespace: string,
): Promise<LockedNamespace | undefined> {
  const { text, name } = cache.get('lock namespace', () => lockNamespaceText(shape));
  return (await connection.query<LockedNamespace>(text, [namespace], name)).rows[0];
}

/** The same, and makes it when it is missing. */
export async function lockOrCreateNamespace(
  parts: IndexParts,
  connection: Queryable,
  namespace: string,
): Promise<LockedNamespace> {
  for (let tries = 0; tries < LOCK_TRIES; tries++) {
    const locked = await lockNamespace(parts, connection, namespace);
    if (locked !== undefined) return locked;
    await connection.query(createNamespaceText(parts.shape), [namespace]);
  }
  throw new HttpError('conflict', 'The namespace is being deleted again and again.');
}

/** Removes the postings of records that are about to change. Planned each time: a plan made for empty tables is of no use later. */
export async function dropPostings(
  { shape }: IndexParts,
  connection: Queryable,
  namespaceId: number,
  ids: readonly string[],
): Promise<void> {
  await connection.query(dropPostingsText(shape), [namespaceId, ids]);
}

/** Adds those of records that were written. @param postings places in `ids` (from 1), indices and values */
export async function addPostings(
  { shape }: IndexParts,
  connection: Queryable,
  namespaceId: number,
  ids: readonly string[],
  postings: readonly unknown[],
): Promise<void> {
  await connection.query(addPostingsText(shape), [namespaceId, ids, ...postings]);
}
