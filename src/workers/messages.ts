import type { Config } from '../config/schema.js';
import type { Step } from '../console/series/request-series.js';
import type { Listening } from '../gateway.js';
import type { MetricsSnapshot } from '../http/monitoring/metrics.js';
import type { Worker as WorkerPlace } from '../services/service.js';

/** Environment variable by which a process learns that it is a worker, and its number (from 1). */
export const WORKER_VARIABLE = 'PORTICO_WORKER';

/** What the primary process tells a worker. */
export type ToWorker =
  | { readonly type: 'begin'; readonly config: Config; readonly place: WorkerPlace }
  | { readonly type: 'stop' }
  /** The configuration was read again. */
  | { readonly type: 'reload'; readonly config: Config }
  /** Wants this worker's own metrics, under the same id. */
  | { readonly type: 'collect'; readonly id: number }
  /** The metrics of all, for the `gather` with this id. */
  | { readonly type: 'gathered'; readonly id: number; readonly snapshots: readonly MetricsSnapshot[] }
  /** Wants the steps of this worker for the console, under the same id. */
  | { readonly type: 'collectSteps'; readonly id: number }
  /** Those of all, for the `gatherSteps` with this id. */
  | { readonly type: 'gatheredSteps'; readonly id: number; readonly steps: readonly (readonly Step[])[] };

/** What a worker tells the primary one. */
export type ToPrimary =
  | { readonly type: 'hello' }
  | { readonly type: 'listening'; readonly about: Listening }
  /** It ends because it could not start. */
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'collected'; readonly id: number; readonly snapshot: MetricsSnapshot }
  /** Somebody asked this worker for the metrics of all. */
  | { readonly type: 'gather'; readonly id: number }
  | { readonly type: 'collectedSteps'; readonly id: number; readonly steps: readonly Step[] }
  /** Somebody asked this worker for the steps of all. */
  | { readonly type: 'gatherSteps'; readonly id: number }
  /** Its counts, before it ends. */
  | { readonly type: 'final'; readonly snapshot: MetricsSnapshot };
