import type { Database } from '../../lib/postgres.js';
import type { ComponentRules } from './records/components.js';
import type { RecordRules } from './records/record-batch.js';
import type { IndexSettings } from './settings.js';
import { type IndexShape, StatementCache } from './statements/index-shape.js';
import type { IndexTables } from './tables/index-tables.js';

/** What everything that works on one index shares. */
export interface IndexParts {
  readonly database: Database;
  readonly settings: IndexSettings;
  readonly shape: IndexShape;
  readonly cache: StatementCache;
  readonly rules: RecordRules;
}

export function indexParts(database: Database, tables: IndexTables, settings: IndexSettings): IndexParts {
  const { shape, vectorType } = tables;
  const components: ComponentRules = {
    dimension: settings.dimension,
    needsLength: shape.dense?.needsLength ?? false,
    largestComponent: shape.dense?.largestComponent,
    vanishingComponent: shape.dense?.vanishingComponent,
  };
  return {
    database,
    settings,
    shape,
    cache: new StatementCache(shape.indexId),
    rules: { shape, components, vectorType, limits: settings },
  };
}
