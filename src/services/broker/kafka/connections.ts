import { HttpError } from '../../../http/errors.js';
import type { Address } from '../../../lib/address.js';
import { type BackoffOptions, backoffDelay } from '../../../lib/backoff.js';
import type { Logger } from '../../../lib/logger.js';
import { unavailable } from '../errors.js';
import { kafkaLogCreator } from './client.js';
import { KafkaConnection, KafkaTimeout } from './kafka-connection.js';
import type { KafkaSecurity } from './sasl.js';

/** Pauses between tries at a broker that cannot be connected to: what asks meanwhile learns at once that it cannot. In ms. */
const PAUSES: BackoffOptions = { initialMs: 50, maxMs: 1_000, factor: 2, jitter: 0.5 };

/** Places whose failures are remembered: brokers that are gone leave theirs behind. */
const REMEMBERED = 10_000;

export interface ConnectionsOptions {
  readonly security: KafkaSecurity;
  /** For TCP, TLS, the first exchange and SASL together, in ms. */
  readonly connectTimeoutMs: number;
  readonly log: Logger;
  readonly now: () => number;
}

/** Tries that failed one after the other. */
interface Failures {
  readonly count: number;
  readonly error: unknown;
  /** When the next one may be made. */
  readonly until: number;
}

/** Connections to brokers by name: opened on first use and again after a loss. */
export class Connections {
  private readonly opened = new Map<string, Promise<KafkaConnection>>();
  private readonly failures = new Map<string, Failures>();
  private closed = false;

  constructor(private readonly options: ConnectionsOptions) {}

  /**
   * The connection of that name, opened when there is none.
   * @throws kafkajs' connection errors, HttpError 503; the last of them again soon after a try that failed
   */
  async to(key: string, address: Address): Promise<KafkaConnection> {
    if (this.closed) throw new HttpError('stopping');
    const current = this.opened.get(key);
    if (current !== undefined) {
      const open = await current;
      if (open.isOpen && open.address.host === address.host && open.address.port === address.port)
        return open;
      if (this.opened.get(key) === current) {
        this.opened.delete(key);
        open.close();
      }
      return this.to(key, address);
    }
    const place = `${key} ${address.host}:${address.port}`;
    const failed = this.failures.get(place);
    if (failed !== undefined && this.options.now() < failed.until) throw failed.error;
    const opening = this.open(address).then(
      (connection) => {
        this.failures.delete(place);
        return connection;
      },
      (error: unknown) => {
        this.opened.delete(key);
        this.noteFailure(place, error);
        throw error;
      },
    );
    this.opened.set(key, opening);
    return opening;
  }

  private noteFailure(place: string, error: unknown): void {
    const count = (this.failures.get(place)?.count ?? 0) + 1;
    if (this.failures.size >= REMEMBERED) this.failures.clear();
    this.failures.set(place, { count, error, until: this.options.now() + backoffDelay(count - 1, PAUSES) });
  }

  /** One for the caller alone, who closes it. @throws kafkajs' connection errors, HttpError 503 */
  async open(address: Address): Promise<KafkaConnection> {
    if (this.closed) throw new HttpError('stopping');
    return KafkaConnection.open(address, {
      clientId: 'portico',
      connectTimeoutMs: this.options.connectTimeoutMs,
      logCreator: kafkaLogCreator(this.options.log),
      security: this.options.security,
    }).catch((error: unknown) => {
      // a broker that takes the connection and stays silent is as good as away
      throw error instanceof KafkaTimeout ? unavailable(error) : error;
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    const settled = await Promise.allSettled(this.opened.values());
    for (const result of settled) if (result.status === 'fulfilled') result.value.close();
    this.opened.clear();
  }
}
