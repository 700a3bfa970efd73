import { Redis } from 'ioredis';
import { HttpError } from '../../http/errors.js';
import type { ReleaseRegistry } from '../../lib/lifecycle.js';
import type { Logger } from '../../lib/logger.js';
import { readCommandTable } from './command-table.js';
import { CommandRules } from './commands.js';
import { notConnected } from './errors.js';
import { RespError, type RespValue } from './resp-decoder.js';
import { encodeCommand, encodeCommands, type Payload } from './resp-encoder.js';
import { Wire } from './wire.js';

export interface KvClientOptions {
  /** `redis://` or `rediss://` with user, password and database number. */
  readonly url: string;
  readonly connectTimeoutMs: number;
  /** Silence of Redis, while replies are due, after which the connection is given up. */
  readonly stallMs: number;
  /** Bytes of replies that one request may get. */
  readonly replyLimit: number;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** Longest pause between two attempts to connect, in ms. */
const LONGEST_PAUSE_MS = 500;

/**
 * One Redis database behind one connection that all requests share. ioredis finds, opens and re-opens the connection
 * (TLS, login, database, wait for a loading server); commands and replies then pass over the socket itself by
 * `Wire`: ioredis makes a promise, a command object and several closures a command, and resends what may have run.
 */
export class KvClient {
  private readonly redis: Redis;
  private wire: Wire | undefined;
  private commandRules = new CommandRules(new Map());
  private lastError: Error | undefined;

  constructor(private readonly options: KvClientOptions) {
    this.redis = new Redis({
      ...connectionOf(options.url),
      protocol: 2,
      connectTimeout: options.connectTimeoutMs,
      connectionName: 'portico',
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      retryStrategy: (attempts) => Math.min(attempts * 50, LONGEST_PAUSE_MS),
    });
    this.redis.on('error', (error: Error) => this.failed(error));
    this.redis.on('connect', () => this.limitLogin());
    this.redis.on('ready', () => this.takeOver());
    options.lifecycle.onStop('kv: Redis connection', () => this.redis.disconnect());
  }

  /** Which commands may run; without the server's own table until the first connection. */
  get rules(): CommandRules {
    return this.commandRules;
  }

  /**
   * Sends commands and resolves to what `finish` makes of their replies, one each and in order.
   * @throws HttpError at once while Redis is away; see `Wire.submit`
   */
  run<T>(payload: Payload, expected: number, finish: (replies: RespValue[]) => T): Promise<T> {
    if (this.wire === undefined) return Promise.reject(notConnected(this.lastError));
    return this.wire.submit(payload, expected, finish);
  }

  /** Asks Redis for a sign of life. @throws HttpError with a reason fit to be shown */
  check(): Promise<void> {
    if (this.wire === undefined)
      return Promise.reject(new HttpError('backend_unavailable', `not connected${this.reason()}`));
    return this.run(encodeCommand(['PING']), 1, ([reply]) => {
      if (reply instanceof RespError) throw new HttpError('backend_unavailable', classWord(reply.text));
    });
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
  private takeOver(): void {
    const socket = this.redis.stream;
    socket.setTimeout(0);
    socket.removeAllListeners('data');
    const wire = new Wire(socket, this.options.stallMs, this.options.replyLimit);
    socket.once('close', () => {
      if (this.wire === wire) this.wire = undefined;
    });
    const { db } = connectionOf(this.options.url);
    // ioredis goes on in database 0 when Redis refuses the one that was asked for
    const payload = encodeCommands([...(db > 0 ? [['SELECT', String(db)]] : []), ['COMMAND']]);
    wire
      .submit(payload, db > 0 ? 2 : 1, (replies) => {
        const refusal = db > 0 ? replies[0] : undefined;
        if (refusal instanceof RespError) socket.destroy(new Error(refusal.text));
        else this.opened(wire, replies.at(-1));
      })
      .catch(this.failed);
  }

  private opened(wire: Wire, commands: RespValue | undefined): void {
    const table = readCommandTable(commands);
    if (table.size === 0)
      this.options.log.warn('Redis does not tell its commands (COMMAND): the read-only token can run none');
    this.commandRules = new CommandRules(table);
    this.wire = wire;
    this.lastError = undefined;
    this.options.log.info({ commands: table.size }, 'connected to Redis');
  }

  private readonly failed = (error: Error): void => {
    // one line for each kind of failure, not one for each of the attempts that meet it
    if (error.message !== this.lastError?.message)
      this.options.log.warn({ err: error }, 'no connection to Redis');
    this.lastError = error;
  };

  /** The system's code (ECONNREFUSED) or Redis' class word (WRONGPASS) of the last failure. */
  private reason(): string {
    if (this.lastError === undefined) return '';
    const { code } = this.lastError as NodeJS.ErrnoException;
    return ` (${code ?? classWord(this.lastError.message)})`;
  }
}

/** The class word of an error reply: the rest may quote what was sent. */
function classWord(text: string): string {
  return /^[A-Z]+(?= )/.exec(text)?.[0] ?? 'error';
}

/** A URL as ioredis' options. Its own reading of URLs would let query parameters change any option. */
function connectionOf(text: string) {
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return {
    host: host === '' ? '127.0.0.1' : host,
    port: url.port === '' ? 6379 : Number(url.port),
    ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
    db: Number(url.pathname.slice(1)),
    ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
  };
}
