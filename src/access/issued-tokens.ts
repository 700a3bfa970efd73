import { HttpError } from '../http/errors.js';
import type { IssuedLookup, Principal, RequestLimits } from '../http/route.js';
import type { ReleaseRegistry } from '../lib/lifecycle.js';
import type { Logger } from '../lib/logger.js';
import type { AccessStore } from './access-store.js';
import { requestLimits } from './request-limits.js';
import { digestOf, type StoredToken, TOKEN_PREFIX } from './token.js';

/** How often the store is asked whether the set has changed, in ms: a change is in force everywhere within a second. */
const LOOK_MS = 300;
/** After so long without an answer an unknown token may be one that was just made, in ms. */
const FRESH_MS = 2_000;

interface Known {
  readonly token: StoredToken;
  /** ms since 1970. */
  readonly expiresAt: number;
  readonly limits: RequestLimits | undefined;
  /** By service and instance; `null`: not granted. */
  readonly principals: Map<string, Principal | null>;
}

export interface IssuedTokensOptions {
  readonly store: AccessStore;
  readonly graceMs: number;
  /** ms since 1970. */
  readonly now: () => number;
  /** Told the ids of tokens that are no longer valid. */
  readonly onGone: (ids: ReadonlySet<string>) => void;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/**
 * All tokens made at run time, in memory, so that looking one up asks nobody. The store is asked for its version a few times a
 * second: it needs no connection that listens, which a pooler between would swallow and whose silence would have to be noticed.
 */
export class IssuedTokens {
  private known = new Map<string, Known>();
  private version: string | undefined;
  /** When the look that was answered last had begun; monotonic ms. */
  private seenAt = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> | undefined;
  private failure: string | undefined;
  private failed = 0;
  private stopped = false;

  constructor(private readonly options: IssuedTokensOptions) {
    options.lifecycle.onStop('access tokens', async () => {
      this.stopped = true;
      clearTimeout(this.timer);
      await this.looking;
    });
    this.lookLater(0);
  }

  /** Looks that the store did not answer. */
  get failures(): number {
    return this.failed;
  }

  lookupFor(service: string, instance: string): IssuedLookup {
    return (secret, username) => {
      if (!secret.startsWith(TOKEN_PREFIX)) return undefined;
      return this.find(digestOf(secret), username, service, instance);
    };
  }

  /** The set as the store has it now. @throws when the store does not answer */
  async refresh(): Promise<void> {
    // one that is under way may have begun before the change
    await this.looking?.catch(() => undefined);
    this.looking ??= this.look();
    await this.looking;
  }

  private find(
    digest: string,
    username: string | undefined,
    service: string,
    instance: string,
  ): Principal | undefined {
    // of a digest its sender cannot choose the first bytes: how long the look takes tells nothing of the others
    const known = this.known.get(digest);
    const ageMs = performance.now() - this.seenAt;
    if (known === undefined && ageMs > FRESH_MS) throw notKnown();
    if (known === undefined || known.expiresAt <= this.options.now()) return undefined;
    if (ageMs > this.options.graceMs) throw notKnown();
    if (username !== undefined && username !== known.token.id) return undefined;
    const principal = principalOf(known, service, instance);
    if (principal === null) throw new HttpError('forbidden', 'This token is not for this service.');
    return principal;
  }

  private lookLater(ms: number): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.looking ??= this.look();
      this.looking.catch(() => undefined).finally(() => this.lookLater(LOOK_MS));
    }, ms);
    this.timer.unref();
  }

  private async look(): Promise<void> {
    const begunAt = performance.now();
    try {
      const version = await this.options.store.version();
      if (version !== this.version) await this.load();
      this.seenAt = begunAt;
      this.failure = undefined;
      this.dropExpired();
    } catch (error) {
      this.noteFailure(error);
      throw error;
    } finally {
      this.looking = undefined;
    }
  }

  private async load(): Promise<void> {
    const { version, tokens } = await this.options.store.load();
    const before = this.known;
    this.known = new Map(
      tokens.map((token) => [token.digest, before.get(token.digest) ?? this.knownOf(token)]),
    );
    this.version = version;
    const gone = [...before].filter(([digest]) => !this.known.has(digest));
    this.tellGone(gone.map(([, { token }]) => token.id));
  }

  private knownOf(token: StoredToken): Known {
    const { expiresAt } = token.record;
    return {
      token,
      expiresAt: expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt),
      limits: requestLimits(token, this.options.store, this.options.now),
      principals: new Map(),
    };
  }

  private dropExpired(): void {
    const now = this.options.now();
    const expired = [...this.known].filter(([, { expiresAt }]) => expiresAt <= now);
    for (const [digest] of expired) this.known.delete(digest);
    this.tellGone(expired.map(([, { token }]) => token.id));
  }

  private tellGone(ids: readonly string[]): void {
    if (ids.length > 0) this.options.onGone(new Set(ids));
  }

  private noteFailure(err: unknown): void {
    const text = err instanceof Error ? err.message : String(err);
    this.failed++;
    // one line for each kind of failure
    if (text !== this.failure) this.options.log.warn({ err }, 'the store of tokens does not answer');
    this.failure = text;
  }
}

/** The same object for all requests: services tell holders by it. */
function principalOf(
  { token, limits, principals }: Known,
  service: string,
  instance: string,
): Principal | null {
  const place = `${service} ${instance}`;
  const made = principals.get(place);
  if (made !== undefined) return made;
  const grant = token.record.grants.find(
    (one) => one.service === service && (one.instances?.includes(instance) ?? true),
  );
  const principal =
    grant === undefined
      ? null
      : {
          name: token.id,
          key: token.id,
          access: grant.access,
          permissions: grant.permissions ?? {},
          ...(limits === undefined ? {} : { limits }),
        };
  principals.set(place, principal);
  return principal;
}

const notKnown = () =>
  new HttpError('backend_unavailable', 'Whether this token is valid cannot be told at present.');
