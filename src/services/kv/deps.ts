import type { DailyQuota } from './api/daily-quota.js';
import type { RequestLimits } from './api/request-limits.js';
import type { KvClient } from './database/client.js';
import type { ReadYourWrites } from './replicas/read-your-writes.js';
import type { Freshness } from './replicas/sync-token.js';

/** What the handlers of one database share. */
export interface KvDeps {
  readonly client: KvClient;
  readonly quota: DailyQuota;
  readonly limits: RequestLimits;
  /** Silence of a stream after which a comment is sent, in ms. */
  readonly streamHeartbeatMs: number;
  readonly nextSyncToken: (freshness?: Freshness) => string;
  /** Where there are replicas; `undefined`: everything goes to the primary. */
  readonly replicas: ReadYourWrites | undefined;
}
