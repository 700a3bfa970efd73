import { HttpError } from '../../../http/errors.js';
import { IdleRegistry } from '../../../lib/idle-registry.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { AclPrincipal } from '../auth/rest-tokens.js';
import { isLoginRefused, notConnected } from '../errors.js';
import type { Backend, Credentials } from './backend.js';
import type { Runner } from './runner.js';

export interface AclUsersOptions {
  readonly open: (user: Credentials) => Backend;
  /** Users with a connection at the same time. */
  readonly limit: number;
  readonly lifecycle: ReleaseRegistry;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
}

interface UserBackend {
  readonly backend: Backend;
  verifiedAt: number;
  verifying: Promise<void> | undefined;
}

const IDLE_MS = 60_000;
/**
 * Redis keeps a connection logged in when its user's password is taken away, so the login is repeated, at most so often:
 * the age at which a token may outlive its password, in ms.
 */
const VERIFIED_FOR_MS = 1_000;

/** Connections logged in as users of Redis' access lists: one a user, while in use. */
export class AclUsers {
  private readonly users: IdleRegistry<UserBackend>;
  private readonly now: () => number;

  constructor(private readonly options: AclUsersOptions) {
    this.now = options.now ?? (() => performance.now());
    this.users = new IdleRegistry({ idleMs: IDLE_MS, close: async ({ backend }) => backend.close() });
    options.lifecycle.onStop('kv: connections of ACL users', () => this.users.closeAll());
  }

  /**
   * Does `work` with a connection of the user.
   * @throws HttpError `unauthorized` when user or password are no longer valid, `backend_unavailable`, `overloaded`
   */
  async use<T>(user: AclPrincipal, work: (runner: Runner) => Promise<T>): Promise<T> {
    if (!this.users.has(user.key) && this.users.size >= this.options.limit)
      throw new HttpError('overloaded', 'Too many ACL users have connections at once');
    const hold = await this.users.hold(user.key, () => this.open(user));
    try {
      await this.verify(user, hold.value);
      return await work(hold.value.backend);
    } catch (error) {
      if (error instanceof HttpError && error.code === 'unauthorized') await this.users.close(user.key);
      throw error;
    } finally {
      hold.release();
    }
  }

  /** Whether Redis lets this user in now. @throws HttpError `backend_unavailable` */
  async isValid(user: Credentials): Promise<boolean> {
    const backend = this.options.open(user);
    try {
      await backend.settled();
      return isIn(backend);
    } finally {
      backend.close();
    }
  }

  private async open(user: Credentials): Promise<UserBackend> {
    const backend = this.options.open(user);
    await backend.settled();
    if (!backend.isOpen) {
      backend.close();
      isIn(backend);
      throw new HttpError('unauthorized');
    }
    return { backend, verifiedAt: this.now(), verifying: undefined };
  }

  private verify(user: Credentials, entry: UserBackend): Promise<void> {
    if (entry.backend.isOpen && this.now() - entry.verifiedAt < VERIFIED_FOR_MS) return Promise.resolve();
    entry.verifying ??= this.login(user, entry).finally(() => {
      entry.verifying = undefined;
    });
    return entry.verifying;
  }

  private async login({ name, password }: Credentials, entry: UserBackend): Promise<void> {
    await entry.backend.settled();
    if (!isIn(entry.backend)) throw new HttpError('unauthorized');
    if (!(await entry.backend.login([name, password]))) throw new HttpError('unauthorized');
    entry.verifiedAt = this.now();
  }
}

/** False when Redis refused the login. @throws HttpError `backend_unavailable` when there is no connection for another reason */
function isIn({ isOpen, failure }: Backend): boolean {
  if (isOpen) return true;
  if (isLoginRefused(failure)) return false;
  throw notConnected(failure);
}
