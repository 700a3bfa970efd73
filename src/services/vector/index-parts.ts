import type { IndexCounters } from './metrics.js';
import type { ComponentRules } from './records/components.js';
import type { RecordRules } from './records/record-batch.js';
import type { IndexSettings } from './settings.js';
import type { TokenDatabase } from './shared-connections.js';
import { type IndexShape, StatementCache } from './statements/index-shape.js';
import type { IndexTables } from './tables/index-tables.js';

/** What everything that works on one index for one token shares. */
export interface IndexParts {
  readonly database: TokenDatabase;
  /** Name of the token. */
  readonly token: string;
  readonly settings: IndexSettings;
  readonly shape: IndexShape;
  readonly cache: StatementCache;
  readonly rules: RecordRules;
  readonly counters: IndexCounters;
}

/** What is the same for all tokens. */
export function indexParts(
  tables: IndexTables,
  settings: IndexSettings,
  counters: IndexCounters,
): Omit<IndexParts, 'database' | 'token'> {
  const { shape, vectorType } = tables;
  const components: ComponentRules = {
    dimension: settings.dimension,
    needsLength: shape.dense?.needsLength ?? false,
    largestComponent: shape.dense?.largestComponent,
    vanishingComponent: shape.dense?.vanishingComponent,
  };
  return {
    settings,
    shape,
    counters,
    cache: new StatementCache(shape.indexId),
    rules: { shape, components, vectorType, limits: settings },
  };
}
