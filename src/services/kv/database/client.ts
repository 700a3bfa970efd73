import { HttpError } from '../../../http/errors.js';
import type { Principal, RouteContext } from '../../../http/route.js';
import type { Address } from '../../../lib/address.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { Logger } from '../../../lib/logger.js';
import type { Tracer } from '../../../lib/traces/tracer.js';
import { AclPrincipal, type RestTokens } from '../auth/rest-tokens.js';
import { Cluster } from '../cluster/cluster.js';
import { CommandCounters } from '../commands/command-counters.js';
import { readCommandTable } from '../commands/command-table.js';
import { CommandRules, type Row } from '../commands/commands.js';
import type { Emulations } from '../emulations/emulations.js';
import { isLoginRefused } from '../errors.js';
import { AclTokens } from '../redis/acl-tokens.js';
import { AclUsers } from '../redis/acl-users.js';
import { Admission } from '../redis/admission.js';
import type { Backend, OpenSessionOptions, Servers } from '../redis/backend.js';
import { Confinement } from '../redis/confinement.js';
import type { Endpoint } from '../redis/connection.js';
import type { Denials } from '../redis/denials.js';
import { ExclusiveConnections } from '../redis/exclusive-connections.js';
import type { Finish } from '../redis/runner.js';
import { ScriptKiller } from '../redis/script-killer.js';
import { Session } from '../redis/session.js';
import { SingleServer } from '../redis/single-server.js';
import type { WireObserver } from '../redis/wire.js';
import { isLasting } from '../resp/passing.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';
import { Streams } from '../streams/streams.js';
import { tracedRows } from './traced-rows.js';

export interface KvClientOptions {
  readonly endpoint: Endpoint;
  /** Nodes of a cluster to begin with; `undefined` for a database on one server. */
  readonly cluster: readonly Address[] | undefined;
  readonly connectTimeoutMs: number;
  /** Deadline of a request, and the silence of Redis after which a connection is given up, in ms. */
  readonly timeoutMs: number;
  /** Bytes of replies that one request may get. */
  readonly replyLimit: number;
  readonly exclusiveLimit: number;
  /** How long a request may wait in Redis, in ms. */
  readonly longestBlockMs: number;
  readonly aclUserLimit: number;
  readonly streamLimit: number;
  /** Whether scripts that have had no end in time are ended. */
  readonly killScripts: boolean;
  readonly denials: Denials;
  readonly tokens: RestTokens;
  readonly emulations: Emulations;
  readonly observer: WireObserver;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
  /** Where traces are wanted. */
  readonly tracer: Tracer | undefined;
}

/** Names that Portico answers in its own way, at least for some arguments, beside those that are emulated. */
const SPECIAL = ['ACL', 'XREAD', 'XREADGROUP'];

/** The default tokens are derived from the database's password: so often it is checked to be that still, in ms. */
const RECHECK_MS = 1_000;

/** One Redis database: its shared connections, those of ACL users and those for blocking commands. */
export class KvClient {
  readonly counters = new CommandCounters();
  readonly aclTokens: AclTokens;
  readonly streams: Streams;
  /** Where what takes Redis long waits for its turn. */
  readonly admission: Admission;
  private readonly shared: Backend;
  private readonly users: AclUsers;
  private readonly exclusive: ExclusiveConnections;
  private commandRules: CommandRules;
  private readonly confinement: Confinement | undefined;

  constructor(readonly options: KvClientOptions) {
    const { lifecycle, aclUserLimit: limit, exclusiveLimit } = options;
    this.commandRules = this.rulesOf(undefined, false);
    const { killScripts, log } = options;
    const killer = killScripts ? new ScriptKiller({ send: (...all) => this.send(...all), log }) : undefined;
    this.admission = new Admission(options.timeoutMs, () => this.pending, killer);
    const { username, password } = options.endpoint;
    const denied = options.denials.everywhere;
    if (denied.length > 0)
      this.confinement = new Confinement({ username, password, denied, log: options.log });
    const servers = this.openServers();
    this.shared = servers.shared;
    lifecycle.onStop('kv: shared connections', () => this.shared.close());
    this.users = new AclUsers({ open: (user) => servers.open({ user }), limit, lifecycle });
    const stallMs = options.longestBlockMs + options.timeoutMs;
    this.exclusive = new ExclusiveConnections({
      open: (user) => servers.open(user === undefined ? { stallMs } : { user, stallMs }),
      limit: exclusiveLimit,
      lifecycle,
    });
    this.aclTokens = new AclTokens(this.users, options.tokens);
    this.streams = new Streams({
      open: (more, user) => this.openSession(user === undefined ? more : { ...more, user }),
      verify: (user) => this.verify(user),
      limit: options.streamLimit,
      stallMs: options.timeoutMs,
      lifecycle,
    });
    this.recheckPassword();
  }

  /** Which commands may run; without the server's own table until the first connection. */
  get rules(): CommandRules {
    return this.commandRules;
  }

  /** Everybody's connections, ACL users excepted. */
  get primary(): Backend {
    return this.shared;
  }

  /** Sends rows in the name of `principal`; `finish` gets one reply each. @throws HttpError as `Runner.run`; `unauthorized` */
  run<T>(principal: Principal, rows: readonly Row[], finish: Finish<T>): Promise<T> {
    const { tracer } = this.options;
    if (tracer === undefined) return this.runNow(principal, rows, finish);
    return tracedRows(tracer, rows, () => this.runNow(principal, rows, finish));
  }

  private runNow<T>(principal: Principal, rows: readonly Row[], finish: Finish<T>): Promise<T> {
    if (principal instanceof AclPrincipal)
      return this.users.use(principal, (runner) => runner.run(rows, finish));
    return this.shared.run(rows, finish);
  }

  /** As one transaction; `finish` gets the replies of MULTI, of each row and of EXEC. @throws as `run` */
  transaction<T>(context: RouteContext, rows: readonly Row[], finish: Finish<T>): Promise<T> {
    const { tracer } = this.options;
    if (tracer === undefined) return this.transactionNow(context, rows, finish);
    return tracedRows(tracer, rows, () => this.transactionNow(context, rows, finish));
  }

  private transactionNow<T>(context: RouteContext, rows: readonly Row[], finish: Finish<T>): Promise<T> {
    if (context.principal instanceof AclPrincipal)
      return this.useExclusive(context, (backend) => backend.guardedTransaction(rows, finish));
    return this.shared.transaction(rows, finish);
  }

  /**
   * Sends rows that may wait in Redis for `blockMs`, on a connection of their own that ends with the request.
   * @throws HttpError as `run`
   */
  wait<T>(context: RouteContext, rows: readonly Row[], blockMs: number, finish: Finish<T>): Promise<T> {
    context.limitTo(blockMs + this.options.timeoutMs);
    return this.useExclusive(context, (backend) => backend.run(rows, finish));
  }

  /** Sends commands of Portico's own, which share a key if they have one. @throws HttpError as `Runner.run` */
  readonly send = <T>(commands: readonly Command[], finish: Finish<T>): Promise<T> =>
    this.shared.run(
      commands.map((command) => this.commandRules.own(command)),
      finish,
    );

  /** Requests that have a connection of their own. */
  get exclusiveInUse(): number {
    return this.exclusive.inUse;
  }

  /** Requests whose replies are due on the shared connections. */
  get pending(): number {
    return this.shared.pending;
  }

  /** Asks Redis for a sign of life. @throws HttpError with a reason fit to be shown */
  check(): Promise<void> {
    return this.shared.check();
  }

  private openServers(): Servers {
    const { cluster, log, lifecycle } = this.options;
    const open = (options: OpenSessionOptions) => this.openSession(options);
    const onCommands = (reply: RespValue) => this.opened(reply);
    if (cluster === undefined) return new SingleServer(open, onCommands);
    return new Cluster({ seeds: cluster, open, onCommands, log, lifecycle });
  }

  private openSession({ at, user, ...more }: OpenSessionOptions): Session {
    const { endpoint, connectTimeoutMs, timeoutMs, replyLimit, observer, log } = this.options;
    const login = user === undefined ? {} : { username: user.name, password: user.password };
    // users come and go, and anybody may try their passwords: no line each, and no further attempt
    const ofUser = user === undefined ? { confinement: this.confinement } : { givesUp: true };
    const nodeLog = at === undefined ? log : log.child({ node: `${at.host}:${at.port}` });
    return new Session({
      endpoint: { ...endpoint, ...at, ...login },
      connectTimeoutMs,
      stallMs: timeoutMs,
      replyLimit,
      observer,
      log: user === undefined ? nodeLog : nodeLog.child({}, { level: 'error' }),
      isNode: this.options.cluster !== undefined,
      ...ofUser,
      ...more,
    });
  }

  private async useExclusive<T>(
    { principal, signal }: RouteContext,
    work: (backend: Backend) => Promise<T>,
  ): Promise<T> {
    const user = principal instanceof AclPrincipal ? principal : undefined;
    // whose password is no longer valid is told so
    if (user !== undefined) await this.users.use(user, () => Promise.resolve());
    return this.exclusive.use(user, principal.name, signal, work);
  }

  /** @throws HttpError `unauthorized` when Redis no longer takes the password of `user`, or the shared one */
  private async verify(user: AclPrincipal | undefined): Promise<void> {
    if (user !== undefined) await this.users.use(user, () => Promise.resolve());
    else if (isLoginRefused(this.shared.failure)) throw new HttpError('unauthorized');
  }

  private opened(commands: RespValue): void {
    const { log } = this.options;
    const isRefused = commands instanceof RespError;
    // what the server said before holds until it says something else
    if (isRefused && (!isLasting(commands) || this.commandRules.size > 0)) return;
    const rules = this.rulesOf(commands, true);
    if (rules.size > 0) log.info({ commands: rules.size }, 'connected to Redis');
    else if (!this.commandRules.isTold)
      log.warn('Redis does not tell its commands (COMMAND): the read-only token can run none');
    this.commandRules = rules;
  }

  private rulesOf(commands: RespValue, isTold: boolean): CommandRules {
    return new CommandRules({
      table: readCommandTable(commands),
      isTold,
      counters: this.counters,
      special: new Set([...SPECIAL, ...this.options.emulations.names]),
      denied: this.options.denials.commands,
    });
  }

  /** Redis keeps connections logged in whose password was changed. */
  private recheckPassword(): void {
    const { username, password } = this.options.endpoint;
    if (password === undefined) return;
    const login = username === undefined ? [password] : [username, password];
    const timer = setInterval(() => {
      // a connection that broke is opened again
      this.shared.login(login).catch(() => undefined);
    }, RECHECK_MS);
    timer.unref();
    this.options.lifecycle.onStop('kv: password check', () => clearInterval(timer));
  }
}
