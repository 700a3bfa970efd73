import type { RateLimiterAbstract } from 'rate-limiter-flexible';
import type { AuditEntry } from '../http/audit.js';
import type { StoredToken } from './token.js';

/** Node's timers take no more, in s; a longer one is due at once. */
export const MOST_TIMER_S = 2_147_483;

/** All tokens at one moment. */
export interface TokenSet {
  readonly version: string;
  readonly tokens: readonly StoredToken[];
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** Of the entry before which the next page begins; `undefined`: there is none. */
  readonly cursor: string | undefined;
}

/** Where all gateways keep what they must agree on. Every call ends within 2 s; it throws when the store does not answer. */
export interface AccessStore {
  /** Another one after each change of the set of tokens. */
  version(): Promise<string>;
  load(): Promise<TokenSet>;
  /** @returns false when there are `most` already */
  add(token: StoredToken, most: number): Promise<boolean>;
  /** @returns false when there is none with this id */
  remove(id: string): Promise<boolean>;
  appendAudit(entries: readonly AuditEntry[]): Promise<void>;
  /** Newest first. @param before cursor of an earlier page */
  audit(before: string | undefined, limit: number): Promise<AuditPage>;
  /** Removes what is older than so many seconds, and counts of requests that are over. */
  purge(retention: number): Promise<void>;
  /** Counts in windows over all gateways. */
  limiter(points: number, seconds: number): RateLimiterAbstract;
}
