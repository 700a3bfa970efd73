import { classifyDatabaseError, type Queryable } from '../../../lib/postgres/postgres.js';
import { translated } from '../errors.js';
import type { IndexParts } from '../index-parts.js';
import { Parameters } from '../statements/index-shape.js';
import { type LockedNamespace, lockNamespace } from './namespace-lock.js';

/** What an index finds at once is one statement's work; after so many ms the namespace is walked through instead. */
const AT_ONCE_MS = 3_000;

export interface Step {
  /** Of records that it was for. */
  readonly count: number;
  /** Where the next step begins; undefined when this was the last. */
  readonly next?: string | undefined;
}

export const NOTHING: Step = { count: 0 };

type Work<T> = (connection: Queryable, locked: LockedNamespace) => Promise<T>;

/**
 * Work on many records of one namespace: each step is a transaction under its lock, so that none runs into the time limit of a
 * statement and writes of others come in between.
 */
export class NamespaceSteps {
  constructor(
    private readonly parts: IndexParts,
    private readonly namespace: string,
    private readonly signal: AbortSignal,
  ) {}

  /** One transaction. @param missing the result when there is no such namespace @throws HttpError */
  locked<T>(missing: T, work: Work<T>): Promise<T> {
    return translated(() => this.transaction(missing, work));
  }

  /** One step by whatever index serves it. @returns undefined when that took too long, and nothing is done @throws HttpError */
  async atOnce<T>(missing: T, work: Work<T>): Promise<T | undefined> {
    try {
      return await this.transaction(missing, async (connection, locked) => {
        await connection.query(`set local statement_timeout = ${AT_ONCE_MS}`);
        return work(connection, locked);
      });
    } catch (error) {
      if (this.signal.aborted || classifyDatabaseError(error).kind !== 'timeout')
        return translated(() => Promise.reject(error));
      return undefined;
    }
  }

  /** Step after step. @returns their counts' sum */
  async inSteps(step: (from: string | undefined) => Promise<Step>): Promise<number> {
    let total = 0;
    for (let from: string | undefined; ; ) {
      const { count, next } = await step(from);
      total += count;
      if (next === undefined) return total;
      from = next;
    }
  }

  private transaction<T>(missing: T, work: Work<T>): Promise<T> {
    return this.parts.database.within(this.signal, 'write').transaction(async (connection) => {
      const locked = await lockNamespace(this.parts, connection, this.namespace);
      return locked === undefined ? missing : work(connection, locked);
    });
  }
}

/** $1 is the namespace's id. */
export function namespaceParameters(id: number): Parameters {
  const parameters = new Parameters();
  parameters.add(id, 'int');
  return parameters;
}
