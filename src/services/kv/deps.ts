import type { KvClient } from './client.js';
import type { DailyQuota } from './daily-quota.js';
import type { ReadYourWrites } from './read-your-writes.js';
import type { RequestLimits } from './request-limits.js';
import type { Freshness } from './sync-token.js';

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
