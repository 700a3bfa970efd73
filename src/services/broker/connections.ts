import { HttpError } from '../../http/errors.js';
import type { Logger } from '../../lib/logger.js';
import { kafkaLogCreator } from './client.js';
import { unavailable } from './errors.js';
import { type Address, KafkaConnection, type KafkaSecurity, KafkaTimeout } from './kafka-connection.js';

/** Connect and first exchange get so long each, in ms: a request must know within 2 s that Kafka is away. */
const CONNECT_MS = 800;

export interface ConnectionsOptions {
  readonly security: KafkaSecurity;
  readonly log: Logger;
}

/** Connections to brokers by name: opened on first use and again after a loss. */
export class Connections {
  private readonly opened = new Map<string, Promise<KafkaConnection>>();
  private closed = false;

  constructor(private readonly options: ConnectionsOptions) {}

  /** The connection of that name, opened when there is none. */
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
    const opening = this.open(address).catch((error: unknown) => {
      this.opened.delete(key);
      throw error;
    });
    this.opened.set(key, opening);
    return opening;
  }

  /** One for the caller alone, who closes it. @throws kafkajs' connection errors, HttpError 503 */
  async open(address: Address): Promise<KafkaConnection> {
    if (this.closed) throw new HttpError('stopping');
    return KafkaConnection.open(address, {
      clientId: 'portico',
      connectTimeoutMs: CONNECT_MS,
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
