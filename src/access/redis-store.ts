import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import type { AuditEntry } from '../http/audit.js';
import type { ReleaseRegistry } from '../lib/lifecycle.js';
import type { Logger } from '../lib/logger.js';
import { openRedis, type Redis } from '../lib/redis/redis.js';
import { type AccessStore, type AuditPage, MOST_TIMER_S, type TokenSet } from './access-store.js';
import type { StoredToken } from './token.js';

const CONNECT_MS = 1_500;
const COMMAND_MS = 1_300;
/** The audit log holds no more entries than about so many, however young they are. */
const MOST_AUDIT_ENTRIES = 100_000;

/** Changes the set and its version in one step. A fresh version is random: after a loss of the keys no gateway takes it for the one it knows. */
const ADD = `if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('SET', KEYS[2], ARGV[4])
return 1`;
const REMOVE = `local gone = redis.call('HDEL', KEYS[1], ARGV[1])
if gone == 1 then redis.call('SET', KEYS[2], ARGV[2]) end
return gone`;

export interface RedisStoreOptions {
  readonly url: string;
  readonly prefix: string;
  /** What lies in Redis is signed with a key made of it: who has a token of the same database could write there. */
  readonly adminToken: string;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** The same under a few keys of Redis. */
export class RedisStore implements AccessStore {
  private readonly redis: Redis;
  private readonly keys: { readonly tokens: string; readonly version: string; readonly audit: string };
  private readonly signingKey: Buffer;

  constructor(private readonly options: RedisStoreOptions) {
    const { prefix, adminToken } = options;
    this.redis = openRedis({ ...options, connectTimeoutMs: CONNECT_MS, commandTimeoutMs: COMMAND_MS });
    this.keys = { tokens: `${prefix}tokens`, version: `${prefix}version`, audit: `${prefix}audit` };
    this.signingKey = Buffer.from(hkdfSync('sha256', adminToken, '', 'portico access records', 32));
  }

  async version(): Promise<string> {
    return (await this.redis.get(this.keys.version)) ?? 'none';
  }

  async load(): Promise<TokenSet> {
    // in one step, or a change in between would go unseen
    const replies = await this.redis.multi().get(this.keys.version).hgetall(this.keys.tokens).exec();
    const [[, version] = [], [failure, fields] = []] = replies ?? [];
    if (replies === null || failure) throw failure ?? new Error('Redis discarded a transaction');
    const tokens = Object.entries(fields as Record<string, string>).flatMap(
      ([id, text]) => this.opened(id, text) ?? [],
    );
    return { version: (version as string | null) ?? 'none', tokens };
  }

  async add(token: StoredToken, most: number): Promise<boolean> {
    const { tokens, version } = this.keys;
    const added = await this.redis.eval(ADD, 2, tokens, version, token.id, this.sealed(token), most, fresh());
    return added === 1;
  }

  async remove(id: string): Promise<boolean> {
    return (await this.redis.eval(REMOVE, 2, this.keys.tokens, this.keys.version, id, fresh())) === 1;
  }

  async appendAudit(entries: readonly AuditEntry[]): Promise<void> {
    const batch = this.redis.pipeline();
    for (const entry of entries)
      batch.xadd(this.keys.audit, 'MAXLEN', '~', MOST_AUDIT_ENTRIES, '*', 'entry', JSON.stringify(entry));
    const failed = (await batch.exec())?.find(([error]) => error);
    if (failed?.[0]) throw failed[0];
  }

  async audit(before: string | undefined, limit: number): Promise<AuditPage> {
    const from = before === undefined ? '+' : `(${before}`;
    const rows = await this.redis.xrevrange(this.keys.audit, from, '-', 'COUNT', limit + 1);
    const page = rows.slice(0, limit);
    return {
      entries: page.map(([, [, text]]) => JSON.parse(text as string) as AuditEntry),
      cursor: rows.length > limit ? page.at(-1)?.[0] : undefined,
    };
  }

  async purge(retention: number): Promise<void> {
    await this.redis.xtrim(this.keys.audit, 'MINID', '~', String(Date.now() - retention * 1_000));
  }

  limiter(points: number, seconds: number): RateLimiterRedis {
    return new RateLimiterRedis({
      storeClient: this.redis,
      keyPrefix: `${this.options.prefix}window`,
      rejectIfRedisNotReady: true,
      points,
      duration: seconds,
      // who is over it asks Redis no more
      inMemoryBlockOnConsumed: points,
      insuranceLimiter: new RateLimiterMemory({ points, duration: Math.min(seconds, MOST_TIMER_S) }),
    });
  }

  private sealed({ id, digest, record }: StoredToken): string {
    const text = JSON.stringify({ digest, record });
    return `${this.signature(id, text)} ${text}`;
  }

  /** What was not signed with this key is no token. */
  private opened(id: string, sealed: string): StoredToken | undefined {
    const at = sealed.indexOf(' ');
    const given = Buffer.from(sealed.slice(0, Math.max(0, at)));
    const text = sealed.slice(at + 1);
    const expected = Buffer.from(this.signature(id, text));
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    return { id, ...(JSON.parse(text) as Omit<StoredToken, 'id'>) };
  }

  private signature(id: string, text: string): string {
    return createHmac('sha256', this.signingKey).update(`${id}\n${text}`).digest('base64url');
  }
}

const fresh = (): string => randomBytes(12).toString('hex');
