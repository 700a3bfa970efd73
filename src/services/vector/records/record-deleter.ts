import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { IndexParts } from '../index-parts.js';
import type { DeleteBody } from '../schemas/reads.js';
import { prefixCondition } from '../statements/read-statements.js';
import { deleteText, deleteWindowText, firstOf } from '../statements/write-statements.js';
import { NamespaceSteps, NOTHING, namespaceParameters } from './namespace-steps.js';
import { type Condition, selectionOf } from './selection.js';

/** Records of a step, each a transaction: 0.2 s of 384 dimensions. Those of a sparse part have up to 1,000 postings each. */
const STEP = 5_000;
const SPARSE_STEP = 1_000;

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
    const steps = new NamespaceSteps(this.parts, namespace, signal);
    if (ids !== undefined) return this.byIds(steps, ids);
    if (prefix !== undefined) return this.byPrefix(steps, prefix);
    return this.byFilter(steps, selectionOf({ filter }) as Condition);
  }

  private async byIds(steps: NamespaceSteps, ids: readonly string[]): Promise<number> {
    let deleted = 0;
    for (let start = 0; start < ids.length; start += this.step) {
      const some = ids.slice(start, start + this.step);
      deleted += await steps.locked(0, (connection, { id }) =>
        this.run(connection, id, (parameters) => `id = any(${parameters.add(some, 'text[]')})`).then(countOf),
      );
    }
    return deleted;
  }

  private byPrefix(steps: NamespaceSteps, prefix: string): Promise<number> {
    return steps.inSteps((from: string | undefined) =>
      steps.locked(NOTHING, async (connection, { id }) => {
        const { deleted, last } = await this.run(connection, id, (parameters) => {
          const after = from === undefined ? '' : ` and id >= ${parameters.add(from, 'text')}`;
          return firstOf(this.parts.shape, prefixCondition(parameters, prefix) + after, this.step, true);
        });
        const count = Number(deleted);
        return { count, next: count < this.step ? undefined : (last ?? undefined) };
      }),
    );
  }

  private async byFilter(steps: NamespaceSteps, condition: Condition): Promise<number> {
    const { shape } = this.parts;
    const first = await steps.atOnce(0, async (connection, { id }) =>
      countOf(
        await this.run(connection, id, (parameters) =>
          firstOf(shape, condition(parameters), this.step, false),
        ),
      ),
    );
    if (first !== undefined && first < this.step) return first;
    // what comes meanwhile is not meant
    let end: string | undefined;
    const rest = await steps.inSteps((from = '0') =>
      steps.locked(NOTHING, async (connection, { id, next_row }) => {
        end ??= next_row;
        const parameters = namespaceParameters(id);
        const text = deleteWindowText(shape, condition(parameters), {
          from: parameters.add(from, 'bigint'),
          end: parameters.add(end, 'bigint'),
          limit: this.step,
        });
        const { rows } = await connection.query<{ deleted: string; next: string | null }>(
          text,
          parameters.values,
        );
        return { count: Number(rows[0]?.deleted ?? 0), next: rows[0]?.next ?? undefined };
      }),
    );
    return (first ?? 0) + rest;
  }

  private async run(connection: Queryable, namespaceId: number, condition: Condition): Promise<Deleted> {
    const parameters = namespaceParameters(namespaceId);
    const text = deleteText(this.parts.shape, condition(parameters));
    return (await connection.query<Deleted>(text, parameters.values)).rows[0] ?? { deleted: '0', last: null };
  }
}

interface Deleted {
  readonly deleted: string;
  readonly last: string | null;
}

function countOf({ deleted }: Deleted): number {
  return Number(deleted);
}
