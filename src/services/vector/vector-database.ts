import { type Database, openDatabase } from '../../lib/postgres/postgres.js';
import type { ServiceRuntime } from '../service.js';
import type { VectorSettings } from './settings.js';

/** Candidates that HNSW keeps while it searches, at least: measured recall@10 of 0.985 on 100,000 x 384. */
export const EF_SEARCH = 80;

/** pgvector takes no more. */
export const MAX_EF_SEARCH = 1_000;

/**
 * The pool behind every index, with pgvector's search settings on each connection.
 * @param onMissingTable see `DatabaseOptions`
 */
export function openVectorDatabase(
  settings: VectorSettings['database'] & { url: string },
  onMissingTable: () => void,
  { log, lifecycle, tracer }: Pick<ServiceRuntime, 'log' | 'lifecycle' | 'tracer'>,
): Database {
  return openDatabase({
    url: settings.url,
    poolSize: Math.max(2, settings.poolSize),
    connectTimeoutMs: settings.connectTimeoutMs,
    statementTimeoutMs: settings.statementTimeoutMs,
    applicationName: 'portico vector',
    settings: {
      'hnsw.ef_search': String(EF_SEARCH),
      // goes on past ef_search until LIMIT is reached; the statements sort again
      'hnsw.iterative_scan': 'relaxed_order',
      // compiling costs more than it saves in statements of a few ms
      jit: 'off',
      // Where most rows are of one namespace, Postgres reads the whole table for any other (48 ms of several processes beside
      // 100,000 x 384); by the index the small one takes less than 1 ms and the large one as long as before.
      enable_seqscan: 'off',
      // Starting workers takes 10 ms, also for the branch of a statement that then does not run: 142 instead of 700 queries a
      // second with HNSW and 4 clients.
      max_parallel_workers_per_gather: '0',
    },
    onMissingTable,
    log,
    lifecycle,
    tracer,
  });
}
