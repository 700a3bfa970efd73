import type { Queryable } from '../../../lib/postgres/postgres.js';
import { classifyDatabaseError } from '../../../lib/postgres/postgres.js';
import { translated } from '../errors.js';
import { filterJsonpath } from '../filter/filter-jsonpath.js';
import { readFilter } from '../filter/read-filter.js';
import type { IndexParts } from '../index-parts.js';
import type { FilterInput } from '../schemas/filter.js';
import type { DeleteBody } from '../schemas/reads.js';
import { Parameters } from '../statements/index-shape.js';
import { prefixCondition } from '../statements/read-statements.js';
import { deleteText, deleteWindowText, firstOf } from '../statements/write-statements.js';
import { type LockedNamespace, lockNamespace } from './namespace-lock.js';

/** Records of a step, each a transaction: 0.2 s of 384 dimensions. Those of a sparse part have up to 1,000 postings each. */
const STEP = 5_000;
const SPARSE_STEP = 1_000;

/** What an index finds at once is deleted in one statement; after so many ms the namespace is walked through instead. */
const AT_ONCE_MS = 3_000;

interface Step {
  readonly deleted: number;
  /** Where the next step begins; undefined when this was the last. */
  readonly next?: string | undefined;
}

/**
 * Deletes records, however many there are: in steps, so that none runs into the time limit of a statement and writes of others
 * come in between. Up to one step it is all or nothing.
 */
export class RecordDeleter {
  private readonly step: number;

  constructor(private readonly parts: IndexParts) {
    this.step = parts.shape.sparse ? SPARSE_STEP : STEP;
  }

  /** @returns how many records were there and are deleted */
  async delete(namespace: string, selection: DeleteBody, signal: AbortSignal): Promise<number> {
    const deleted = await this.deleteSelected(namespace, selection, signal);
    this.parts.counters.deleted += deleted;
    return deleted;
  }

  private deleteSelected(namespace: string, selection: DeleteBody, signal: AbortSignal): Promise<number> {
    const { ids, prefix, filter } = selection;
    if (ids !== undefined) return this.byIds(namespace, ids, signal);
    if (prefix !== undefined) return this.byPrefix(namespace, prefix, signal);
    return this.byFilter(namespace, filterJsonpath(readFilter(filter as FilterInput)), signal);
  }

  private async byIds(namespace: string, ids: readonly string[], signal: AbortSignal): Promise<number> {
    let deleted = 0;
    for (let start = 0; start < ids.length; start += this.step) {
      const some = ids.slice(start, start + this.step);
      deleted += await this.locked(namespace, signal, 0, (connection, { id }) =>
        this.run(connection, id, (parameters) => `id = any(${parameters.add(some, 'text[]')})`).then(countOf),
      );
    }
    return deleted;
  }

  private byPrefix(namespace: string, prefix: string, signal: AbortSignal): Promise<number> {
    return this.inSteps((from: string | undefined) =>
      this.locked(namespace, signal, NOTHING, async (connection, { id }) => {
        const { deleted, last } = await this.run(connection, id, (parameters) => {
          const after = from === undefined ? '' : ` and id >= ${parameters.add(from, 'text')}`;
          return firstOf(this.parts.shape, prefixCondition(parameters, prefix) + after, this.step, true);
        });
        return {
          deleted: Number(deleted),
          next: Number(deleted) < this.step ? undefined : (last ?? undefined),
        };
      }),
    );
  }

  private async byFilter(namespace: string, jsonpath: string, signal: AbortSignal): Promise<number> {
    const first = await this.atOnce(namespace, jsonpath, signal);
    if (first !== undefined && first < this.step) return first;
    // what comes meanwhile is not meant
    let end: string | undefined;
    const rest = await this.inSteps((from = '0') =>
      this.locked(namespace, signal, NOTHING, async (connection, { id, next_row }) => {
        end ??= next_row;
        const parameters = namespaceParameters(id);
        const text = deleteWindowText(
          this.parts.shape,
          `metadata @@ ${parameters.add(jsonpath, 'jsonpath')}`,
          {
            from: parameters.add(from, 'bigint'),
            end: parameters.add(end, 'bigint'),
            limit: this.step,
          },
        );
        const { rows } = await connection.query<{ deleted: string; next: string | null }>(
          text,
          parameters.values,
        );
        return { deleted: Number(rows[0]?.deleted ?? 0), next: rows[0]?.next ?? undefined };
      }),
    );
    return (first ?? 0) + rest;
  }

  /** One step by whatever index serves the filter. @returns undefined when that took too long, and nothing is deleted */
  private async atOnce(
    namespace: string,
    jsonpath: string,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { database, shape } = this.parts;
    try {
      return await database.within(signal, 'write').transaction(async (connection) => {
        const locked = await lockNamespace(this.parts, connection, namespace);
        if (locked === undefined) return 0;
        await connection.query(`set local statement_timeout = ${AT_ONCE_MS}`);
        return countOf(
          await this.run(connection, locked.id, (parameters) =>
            firstOf(shape, `metadata @@ ${parameters.add(jsonpath, 'jsonpath')}`, this.step, false),
          ),
        );
      });
    } catch (error) {
      if (signal.aborted || classifyDatabaseError(error).kind !== 'timeout')
        return translated(() => Promise.reject(error));
      return undefined;
    }
  }

  private async inSteps(step: (from: string | undefined) => Promise<Step>): Promise<number> {
    let total = 0;
    for (let from: string | undefined; ; ) {
      const { deleted, next } = await step(from);
      total += deleted;
      if (next === undefined) return total;
      from = next;
    }
  }

  /** A transaction under the namespace's lock. @param missing the result when there is no such namespace */
  private locked<T>(
    namespace: string,
    signal: AbortSignal,
    missing: T,
    work: (connection: Queryable, locked: LockedNamespace) => Promise<T>,
  ): Promise<T> {
    return translated(() =>
      this.parts.database.within(signal, 'write').transaction(async (connection) => {
        const locked = await lockNamespace(this.parts, connection, namespace);
        return locked === undefined ? missing : work(connection, locked);
      }),
    );
  }

  private async run(
    connection: Queryable,
    namespaceId: number,
    condition: (parameters: Parameters) => string,
  ): Promise<Deleted> {
    const parameters = namespaceParameters(namespaceId);
    const text = deleteText(this.parts.shape, condition(parameters));
    return (await connection.query<Deleted>(text, parameters.values)).rows[0] ?? { deleted: '0', last: null };
  }
}

interface Deleted {
  readonly deleted: string;
  readonly last: string | null;
}

const NOTHING: Step = { deleted: 0 };

function countOf({ deleted }: Deleted): number {
  return Number(deleted);
}

/** $1 is the namespace's id. */
function namespaceParameters(id: number): Parameters {
  const parameters = new Parameters();
  parameters.add(id, 'int');
  return parameters;
}
