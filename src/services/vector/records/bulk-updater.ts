import { classifyDatabaseError, type Queryable } from '../../../lib/postgres/postgres.js';
import { sliced } from '../../../lib/slices.js';
import { translated } from '../errors.js';
import { filterJsonpath } from '../filter/filter-jsonpath.js';
import { readFilter } from '../filter/read-filter.js';
import type { IndexParts } from '../index-parts.js';
import type { AnyUpdate, Metadata } from '../schemas/records.js';
import { Parameters } from '../statements/index-shape.js';
import { prefixCondition } from '../statements/read-statements.js';
import {
  selectedText,
  selectedWindowText,
  setMetadataText,
  setSameMetadataText,
} from '../statements/write-statements.js';
import { mergePatch } from './merge-patch.js';
import { metadataText } from './metadata.js';
import { lockNamespace } from './namespace-lock.js';

/** Records of a step, which is a transaction. */
const STEP = 500;
/** After so much metadata, old and new, a step ends: Postgres indexes every key of them, for 20 MB in more than 10 s. */
const STEP_BYTES = 1024 * 1024;
/** What an index finds at once is changed in one step; after so many ms the namespace is walked through instead. */
const AT_ONCE_MS = 3_000;

interface Selected {
  /** Where the record lies, as long as the namespace is locked. */
  readonly at: string | null;
  readonly metadata: string;
  readonly next: string | null;
}

interface Step {
  readonly updated: number;
  /** Where the next step begins; undefined when this was the last. */
  readonly next?: string | undefined;
}

/** How a record's metadata change. */
interface Change {
  /** JSON of the request. */
  readonly given: string;
  /** New metadata of a record as JSON; absent where `given` replaces the old. */
  readonly merged?: ((old: string) => string) | undefined;
}

/**
 * Changes the metadata of all records that a filter or a prefix finds, in steps, each of which is all or nothing. What is as it
 * shall be is not written, so that a call which is repeated after its time was up comes further than the one before.
 */
export class BulkUpdater {
  constructor(private readonly parts: IndexParts) {}

  /** @returns how many records were found @throws HttpError 422 for metadata that are too large, also once they are merged */
  async update(namespace: string, body: AnyUpdate, signal: AbortSignal): Promise<number> {
    const { rules } = this.parts;
    const metadata = body.metadata as Metadata;
    const textOf = (value: Metadata) => metadataText(value, rules.limits.maxMetadataBytes, 'body.metadata');
    // checked before anything is merged, where depth could be trouble
    const given = textOf(metadata);
    const isMerged = body.metadataUpdateMode !== 'OVERWRITE';
    const merged = (old: string) => textOf(mergePatch(JSON.parse(old), metadata) as Metadata);
    const change: Change = { given, ...(isMerged ? { merged } : {}) };
    const condition = conditionOf(body);
    const first = await this.atOnce(namespace, condition, change, signal);
    return first ?? this.inSteps(namespace, condition, change, signal);
  }

  /** One step by whatever index serves the condition. @returns undefined when there are more, or that took too long: nothing is done */
  private async atOnce(
    namespace: string,
    condition: Condition,
    change: Change,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { database, shape } = this.parts;
    try {
      return await database.within(signal, 'write').transaction(async (connection) => {
        const locked = await lockNamespace(this.parts, connection, namespace);
        if (locked === undefined) return 0;
        await connection.query(`set local statement_timeout = ${AT_ONCE_MS}`);
        const parameters = namespaceParameters(locked.id);
        const text = selectedText(shape, condition(parameters), STEP + 1);
        const { rows } = await connection.query<Selected>(text, parameters.values);
        const bytes = rows.reduce((sum, { metadata }) => sum + metadata.length + change.given.length, 0);
        if (rows.length > STEP || bytes > STEP_BYTES) return undefined;
        return this.write(connection, rows, change);
      });
    } catch (error) {
      if (signal.aborted || classifyDatabaseError(error).kind !== 'timeout')
        return translated(() => Promise.reject(error));
      return undefined;
    }
  }

  private async inSteps(
    namespace: string,
    condition: Condition,
    change: Change,
    signal: AbortSignal,
  ): Promise<number> {
    let total = 0;
    // what comes meanwhile is not meant
    let end: string | undefined;
    for (let from: string | undefined = '0'; from !== undefined; ) {
      const begin: string = from;
      const { updated, next }: Step = await translated(() =>
        this.parts.database.within(signal, 'write').transaction(async (connection) => {
          const locked = await lockNamespace(this.parts, connection, namespace);
          if (locked === undefined) return { updated: 0 };
          end ??= locked.next_row;
          const parameters = namespaceParameters(locked.id);
          const text = selectedWindowText(this.parts.shape, condition(parameters), {
            from: parameters.add(begin, 'bigint'),
            end: parameters.add(end, 'bigint'),
            limit: STEP,
            bytes: STEP_BYTES,
            more: change.given.length,
          });
          const { rows } = await connection.query<Selected>(text, parameters.values);
          const updated = await this.write(connection, rows, change);
          return { updated, next: rows[0]?.next ?? undefined };
        }),
      );
      total += updated;
      from = next;
    }
    return total;
  }

  private async write(
    connection: Queryable,
    rows: readonly Selected[],
    { given, merged }: Change,
  ): Promise<number> {
    const meant = rows.filter(({ at }) => at !== null);
    if (meant.length === 0) return 0;
    const places = meant.map(({ at }) => at);
    const { shape } = this.parts;
    if (merged === undefined) await connection.query(setSameMetadataText(shape), [places, given]);
    else {
      const all = await sliced(each(meant, merged));
      await connection.query(setMetadataText(shape), [places, `[${all.join(',')}]`]);
    }
    return meant.length;
  }
}

function* each(rows: readonly Selected[], merged: (old: string) => string): Generator<void, string[]> {
  const all: string[] = [];
  for (const { metadata } of rows) {
    all.push(merged(metadata));
    yield;
  }
  return all;
}

type Condition = (parameters: Parameters) => string;

function conditionOf({ prefix, filter }: AnyUpdate): Condition {
  const jsonpath = filter === undefined ? undefined : filterJsonpath(readFilter(filter));
  return (parameters) =>
    [
      ...(prefix === undefined ? [] : [prefixCondition(parameters, prefix)]),
      ...(jsonpath === undefined ? [] : [`metadata @@ ${parameters.add(jsonpath, 'jsonpath')}`]),
    ].join(' and ');
}

/** $1 is the namespace's id. */
function namespaceParameters(id: number): Parameters {
  const parameters = new Parameters();
  parameters.add(id, 'int');
  return parameters;
}
