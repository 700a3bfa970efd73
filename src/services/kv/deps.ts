import type { KvClient } from './client.js';
import type { DailyQuota } from './daily-quota.js';
import type { RequestLimits } from './request-limits.js';

/** What the handlers of one database share. */
export interface KvDeps {
  readonly client: KvClient;
  readonly quota: DailyQuota;
  readonly limits: RequestLimits;
  /** Silence of a stream after which a comment is sent, in ms. */
  readonly streamHeartbeatMs: number;
  readonly nextSyncToken: () => string;
}
