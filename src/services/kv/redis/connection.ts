import type { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { Redis, type RedisOptions } from 'ioredis';
import type { Address } from '../../../lib/address.js';
import type { Logger } from '../../../lib/logger.js';
import { isLoginRefused } from '../errors.js';

/** Where a server is and as whom to log in. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  /** Of a Unix socket; then host and port mean nothing. */
  readonly path?: string;
  readonly username?: string;
  readonly password?: string;
  readonly db: number;
  readonly tls?: ConnectionOptions;
  /** Asked which server has the wanted role among those that they watch under the name `host`. */
  readonly sentinels?: SentinelEndpoints;
}

export interface SentinelEndpoints {
  readonly nodes: readonly Address[];
  readonly username?: string;
  readonly password?: string;
  readonly tls?: ConnectionOptions;
  readonly role: 'master' | 'slave';
  /** Connections that are told when the server with the role is another one. */
  readonly followers?: Set<Follower>;
}

/** Something that is connected to one server. */
export interface Follower {
  /** Breaks a connection to any other server than that at one of `hosts` (numeric addresses); what breaks is made anew. */
  leaveUnlessAt(hosts: readonly string[], port: number): void;
}

export interface KeptConnectionOptions {
  readonly endpoint: Endpoint;
  readonly connectTimeoutMs: number;
  readonly log: Logger;
  /** Takes a socket that is connected and logged in; from then on it belongs to the caller. */
  readonly onSocket: (socket: Socket) => void;
  /** Told of every failure; an attempt to connect that fails is one. */
  readonly onFailure?: (error: Error) => void;
  /** Whether a refused login ends all attempts. */
  readonly givesUp: boolean;
}

/** Longest pause between two attempts to connect, in ms. */
const LONGEST_PAUSE_MS = 500;

/**
 * Keeps one connection to Redis open. ioredis finds the server (Sentinel), opens, encrypts and logs in, again and again;
 * commands and replies then pass over the socket itself: ioredis makes a promise, a command object and several
 * closures a command, and resends what may have run.
 */
export class Connection implements Follower {
  private readonly redis: Redis;
  private lastFailure: Error | undefined;
  /** Why the Sentinels that were asked last did not help. */
  private sentinelFailure: Error | undefined;

  constructor(private readonly options: KeptConnectionOptions) {
    this.redis = new Redis({
      ...driverOptions(options.endpoint, options.connectTimeoutMs),
      protocol: 2,
      connectTimeout: options.connectTimeoutMs,
      connectionName: 'portico',
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      // it would keep out who comes to kill a script
      enableReadyCheck: false,
      retryStrategy: pauseMs,
    });
    this.redis.on('error', (error: Error) => this.driverFailed(error));
    if (options.endpoint.sentinels !== undefined) {
      this.redis.on('connecting', () => {
        this.sentinelFailure = undefined;
      });
      this.redis.on('sentinelError', (error: Error) => {
        this.sentinelFailure = error;
      });
      options.endpoint.sentinels.followers?.add(this);
    }
    this.redis.on('connect', () => {
      this.hearFurtherErrors();
      this.limitLogin();
    });
    this.redis.on('ready', () => this.handOver());
  }

  /** Why there is no connection; `undefined` while there is one. */
  get failure(): Error | undefined {
    return this.lastFailure;
  }

  /** The owner of the socket is content with it: the next failure is a new one. */
  succeeded(): void {
    this.lastFailure = undefined;
  }

  failed(error: Error): void {
    // one line for each kind of failure, not one for each of the attempts that meet it
    if (error.message !== this.lastFailure?.message)
      this.options.log.warn({ err: error }, 'no connection to Redis');
    this.lastFailure = error;
    this.options.onFailure?.(error);
    if (this.options.givesUp && isLoginRefused(error)) this.close();
  }

  leaveUnlessAt(hosts: readonly string[], port: number): void {
    const socket = this.redis.stream as Socket | undefined;
    const { remoteAddress, remotePort } = socket ?? {};
    if (remoteAddress === undefined || (remotePort === port && hosts.includes(remoteAddress))) return;
    socket?.destroy(new Error('the Sentinels have named another primary'));
  }

  close(): void {
    this.options.endpoint.sentinels?.followers?.delete(this);
    this.hearFurtherErrors();
    this.redis.disconnect();
  }

  /**
   * ioredis listens for one error of a socket, and one that nobody hears is the end of the gateway. An encrypted socket can have
   * two: a certificate that is refused while the connection is being closed, and then the server's alert; or the alert
   * that a certificate is missing, and then the login that can no longer be written.
   */
  private hearFurtherErrors(): void {
    const socket = this.redis.stream as Socket | undefined;
    socket?.on('error', () => undefined);
  }

  /** ioredis says that all Sentinels are unreachable whenever it begins their list again, even if each of them answered. */
  private driverFailed(error: Error): void {
    const { sentinelFailure: cause } = this;
    if (!error.message.startsWith('All sentinels are unreachable')) this.failed(error);
    else if (cause !== undefined)
      this.failed(Object.assign(new Error('no Sentinel names a server', { cause }), { code: 'ESENTINEL' }));
  }

  /** ioredis waits without end for the answers to its login: a peer that accepted and fell silent would be kept for ever. */
  private limitLogin(): void {
    const socket = this.redis.stream;
    const { connectTimeoutMs } = this.options;
    socket.setTimeout(connectTimeoutMs, () =>
      socket.destroy(new Error(`no answer from Redis for ${connectTimeoutMs} ms`)),
    );
  }

  /** From here on ioredis only watches the socket for its end. */
  private handOver(): void {
    const socket = this.redis.stream as Socket;
    socket.setTimeout(0);
    socket.removeAllListeners('data');
    this.options.onSocket(socket);
  }
}

/** Before the next attempt to connect. */
function pauseMs(attempts: number): number {
  return Math.min(attempts * 50, LONGEST_PAUSE_MS);
}

/** ioredis' own reading of URLs would let query parameters change any option, so it gets options. */
function driverOptions(endpoint: Endpoint, timeoutMs: number): Omit<RedisOptions, 'replyMapping'> {
  const { host, port, path, username, password, db, tls, sentinels } = endpoint;
  const login = {
    db,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  };
  if (path !== undefined) return { path, ...login };
  if (sentinels === undefined) return { host, port, ...login };
  return {
    ...login,
    name: host,
    role: sentinels.role,
    sentinels: [...sentinels.nodes],
    // else a Sentinel that accepts and falls silent would be waited for without end
    sentinelCommandTimeout: timeoutMs,
    enableTLSForSentinelMode: tls !== undefined,
    sentinelRetryStrategy: pauseMs,
    ...(sentinels.username === undefined ? {} : { sentinelUsername: sentinels.username }),
    ...(sentinels.password === undefined ? {} : { sentinelPassword: sentinels.password }),
    ...(sentinels.tls === undefined ? {} : { sentinelTLS: sentinels.tls }),
  };
}
