import { HttpError } from '../../../http/errors.js';
import { classifyDatabaseError, type Queryable } from '../../../lib/postgres/postgres.js';
import { translated } from '../errors.js';
import type { IndexParts } from '../index-parts.js';
import type { RenameBody } from '../schemas/reads.js';
import {
  deferGraphText,
  dropNamespacesText,
  endQueriesText,
  leaveToSweeperText,
  lockIndexText,
  lockNamespacesText,
  lockTablesText,
  othersWithRecordsText,
  renameNamespaceText,
  renewNamespacesText,
  resetCountsText,
  truncateText,
} from '../statements/namespace-statements.js';
import { lockOrCreateNamespace } from './namespace-lock.js';

interface Space {
  readonly id: number;
  readonly name: string;
}

/** TRUNCATE waits for every reader, and all others wait behind it: after so many ms the rows are left to the sweeper. */
const TRUNCATE_WAIT = '500ms';
/** Postgres' lock_not_available. */
const LOCK_NOT_AVAILABLE = '55P03';

/** Empties, deletes and renames namespaces. The default one, called "", is always there. */
export class Namespaces {
  constructor(
    private readonly parts: IndexParts,
    /** Records or HNSW indexes of namespaces have to go, or to be made. */
    private readonly onGone: () => void,
  ) {}

  /** Empties one namespace, or all of them where `namespace` is undefined; they stay, and number their records from 0 again. */
  async reset(namespace: string | undefined, signal: AbortSignal): Promise<void> {
    await this.transaction(signal, async (connection) => {
      const spaces =
        namespace === undefined
          ? (await connection.query<Space>(lockIndexText(this.parts.shape))).rows
          : await this.lock(connection, [namespace]);
      const ids = spaces.map(({ id }) => id);
      if (ids.length === 0) return;
      await connection.query(endQueriesText(this.parts.shape), [ids]);
      if (await this.truncate(connection, ids)) {
        await connection.query(resetCountsText(this.parts.shape), [ids]);
        return;
      }
      await connection.query(leaveToSweeperText(this.parts.shape), [ids]);
      await connection.query(renewNamespacesText(this.parts.shape), [ids]);
    });
    this.onGone();
  }

  /** Whether the graph of a namespace, which is made where it is missing, is built when it grows or later. */
  async deferGraph(namespace: string, defer: boolean, signal: AbortSignal): Promise<void> {
    await this.transaction(signal, async (connection) => {
      const { id } = await lockOrCreateNamespace(this.parts, connection, namespace);
      await connection.query(deferGraphText(this.parts.shape), [id, defer]);
    });
    this.onGone();
  }

  /** @throws HttpError 404 when there is none, 400 for the default one */
  async delete(namespace: string, signal: AbortSignal): Promise<void> {
    if (namespace === '') throw notForDefault('deleted');
    await this.transaction(signal, async (connection) => {
      const [space] = await this.lock(connection, [namespace]);
      if (space === undefined) throw this.missing(namespace);
      await this.drop(connection, space.id);
    });
    this.onGone();
  }

  /** @throws HttpError 404 when there is none, 409 when the new name is taken, 400 for the default one */
  async rename({ namespace, newNamespace, deleteExisting }: RenameBody, signal: AbortSignal): Promise<void> {
    if (namespace === '' || newNamespace === '') throw notForDefault('renamed');
    await this.transaction(signal, async (connection) => {
      const spaces = await this.lock(connection, [namespace, newNamespace]);
      const source = spaces.find(({ name }) => name === namespace);
      const target = spaces.find(({ name }) => name === newNamespace);
      if (source === undefined) throw this.missing(namespace);
      if (source === target) return;
      if (target !== undefined) {
        if (!deleteExisting)
          throw new HttpError(
            'conflict',
            `Namespace ${newNamespace} exists; set deleteExisting to replace it.`,
          );
        await this.drop(connection, target.id);
      }
      await connection.query(renameNamespaceText(this.parts.shape), [source.id, newNamespace]);
    });
    if (deleteExisting) this.onGone();
  }

  private async transaction(
    signal: AbortSignal,
    work: (connection: Queryable) => Promise<void>,
  ): Promise<void> {
    const { database } = this.parts;
    await translated(() => database.within(signal, 'control').transaction(work));
  }

  private async lock(connection: Queryable, names: readonly string[]): Promise<Space[]> {
    return (await connection.query<Space>(lockNamespacesText(this.parts.shape), [names])).rows;
  }

  private async drop(connection: Queryable, id: number): Promise<void> {
    const { shape } = this.parts;
    for (const text of [endQueriesText(shape), leaveToSweeperText(shape), dropNamespacesText(shape)])
      await connection.query(text, [[id]]);
  }

  /**
   * Empties the tables at once where no other namespace has records: dead rows of a large table would slow down every
   * search until Postgres has cleared them away. Where somebody holds the table, nothing happens.
   * @returns whether they are empty
   */
  private async truncate(connection: Queryable, emptied: readonly number[]): Promise<boolean> {
    const { shape } = this.parts;
    const othersAreEmpty = async () =>
      (await connection.query(othersWithRecordsText(shape), [emptied])).rowCount === 0;
    if (!(await othersAreEmpty())) return false;
    await connection.query('savepoint before_truncate');
    try {
      await connection.query(`set local lock_timeout = '${TRUNCATE_WAIT}'`);
      await connection.query(lockTablesText(shape));
      // nobody can write records from here, so what was looked at before is looked at again
      const stillEmpty = await othersAreEmpty();
      if (stillEmpty) await connection.query(truncateText(shape));
      await connection.query('set local lock_timeout = 0');
      return stillEmpty;
    } catch (error) {
      if (classifyDatabaseError(error).sqlState !== LOCK_NOT_AVAILABLE) throw error;
      await connection.query('rollback to savepoint before_truncate');
      return false;
    }
  }

  private missing(namespace: string): HttpError {
    return new HttpError(
      'not_found',
      `Namespace ${namespace} for the index ${this.parts.settings.name} does not exist`,
    );
  }
}

function notForDefault(what: string): HttpError {
  return new HttpError('invalid_request', `The default namespace cannot be ${what}.`);
}
