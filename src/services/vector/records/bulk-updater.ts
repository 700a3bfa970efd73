import type { Queryable } from '../../../lib/postgres/postgres.js';
import { mapped } from '../../../lib/slices.js';
import type { IndexParts } from '../index-parts.js';
import type { AnyUpdate, Metadata } from '../schemas/records.js';
import {
  selectedText,
  selectedWindowText,
  setMetadataText,
  setSameMetadataText,
} from '../statements/write-statements.js';
import { mergePatch } from './merge-patch.js';
import { metadataText } from './metadata.js';
import { NamespaceSteps, NOTHING, namespaceParameters } from './namespace-steps.js';
import { type Condition, selectionOf } from './selection.js';

/** Records of a step, which is a transaction. */
const STEP = 500;
/** After so much metadata, old and new, a step ends: Postgres indexes every key of them, for 20 MB in more than 10 s. */
const STEP_BYTES = 1024 * 1024;

interface Selected {
  /** Where the record lies, as long as the namespace is locked. */
  readonly at: string | null;
  readonly metadata: string;
  readonly next: string | null;
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
    const condition = selectionOf(body) as Condition;
    const steps = new NamespaceSteps(this.parts, namespace, signal);
    const first = await this.atOnce(steps, condition, change);
    return first ?? this.inSteps(steps, condition, change);
  }

  /** @returns undefined when there are more than a step takes, or that took too long: nothing is done */
  private atOnce(steps: NamespaceSteps, condition: Condition, change: Change): Promise<number | undefined> {
    return steps.atOnce<number | undefined>(0, async (connection, { id }) => {
      const parameters = namespaceParameters(id);
      const text = selectedText(this.parts.shape, condition(parameters), STEP + 1);
      const { rows } = await connection.query<Selected>(text, parameters.values);
      const bytes = rows.reduce((sum, { metadata }) => sum + metadata.length + change.given.length, 0);
      if (rows.length > STEP || bytes > STEP_BYTES) return undefined;
      return this.write(connection, rows, change);
    });
  }

  private inSteps(steps: NamespaceSteps, condition: Condition, change: Change): Promise<number> {
    // what comes meanwhile is not meant
    let end: string | undefined;
    return steps.inSteps((from = '0') =>
      steps.locked(NOTHING, async (connection, { id, next_row }) => {
        end ??= next_row;
        const parameters = namespaceParameters(id);
        const text = selectedWindowText(this.parts.shape, condition(parameters), {
          from: parameters.add(from, 'bigint'),
          end: parameters.add(end, 'bigint'),
          limit: STEP,
          bytes: STEP_BYTES,
          more: change.given.length,
        });
        const { rows } = await connection.query<Selected>(text, parameters.values);
        return { count: await this.write(connection, rows, change), next: rows[0]?.next ?? undefined };
      }),
    );
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
      const all = await mapped(meant, ({ metadata }) => merged(metadata), 1);
      await connection.query(setMetadataText(shape), [places, `[${all.join(',')}]`]);
    }
    return meant.length;
  }
}
