import type { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib';
import { backoffDelay } from '../../../lib/backoff.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { Logger } from '../../../lib/logger.js';
import { addressesOf } from '../../../lib/several-hosts.js';
import { type TlsFiles, tlsOptions } from '../../../lib/tls.js';
import { within } from '../../../lib/within.js';

export type { Channel, ConfirmChannel, ConsumeMessage } from 'amqplib';

/** Longest wait for TCP, TLS and the AMQP handshake, in ms. */
const CONNECT_MS = 5_000;
/** A broker that is silent for two of these, in seconds, counts as lost. */
const HEARTBEAT_S = 5;
/** A node that is cut off from the others takes connections and answers nothing that they must agree on: another is tried, in ms. */
const UP_MS = 15_000;
/** A broker that does not answer the good-bye is cut off after so many ms. */
const CLOSE_MS = 1_000;

export interface BrokerLinkOptions {
  /** `amqp://user:password@host:port/vhost`, `amqps://` for TLS; of a cluster the nodes, with commas between them. */
  readonly url: string;
  /** Read once: a connection that is made later takes what they held then. */
  readonly tls: TlsFiles;
  readonly name: string;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
  /** Prepares a new connection's channel; the link counts as up when it resolves. */
  readonly onUp: (channel: ConfirmChannel) => Promise<void>;
  /** The channel is unusable from now on; what was unconfirmed is unknown, what was unacked will come again. */
  readonly onDown: (error: Error) => void;
}

/**
 * One connection with one channel that is made anew, with growing pauses, whenever either is lost. A closed channel
 * costs the connection too: a half-working state would have to be told apart everywhere.
 */
export class BrokerLink {
  /** The channel while the link is up. */
  channel: ConfirmChannel | undefined;
  /** Why RabbitMQ takes no publishes at present (memory or disk alarm). */
  blocked: string | undefined;
  private readonly certificates: ConnectionOptions;
  /** Addresses of the nodes, and the one that is connected to, or tried next. */
  private readonly nodes: string[];
  private node = 0;
  private stopped = false;
  private failures = 0;
  /** Ends the present session or pause. */
  private interrupt: (error: Error) => void = () => undefined;

  constructor(private readonly options: BrokerLinkOptions) {
    this.certificates = tlsOptions(options.tls);
    this.nodes = addressesOf(options.url).map(withHeartbeat);
    const running = this.run();
    const stop = () => {
      this.stopped = true;
      this.interrupt(new Error('the gateway is stopping'));
      return running;
    };
    options.lifecycle.onStop(`rabbitmq ${options.name}`, stop, CONNECT_MS + 2 * CLOSE_MS);
  }

  /** Gives the connection up and makes it anew, for what only `onUp` can repair. */
  restart(reason: string): void {
    if (this.channel !== undefined) this.interrupt(new Error(reason));
  }

  private async run(): Promise<void> {
    const { log, name } = this.options;
    while (!this.stopped) {
      try {
        await this.session();
      } catch (err) {
        if (this.stopped) break;
        log.warn({ err, failures: this.failures }, `rabbitmq ${name}: not connected`);
      }
      // the other nodes are tried before the pauses grow
      this.node = (this.node + 1) % this.nodes.length;
      await this.pause(backoffDelay(Math.floor(this.failures++ / this.nodes.length)));
    }
  }

  /** Connects, works until connection or channel is lost or the link is stopped, cleans up. Always rejects. */
  private async session(): Promise<never> {
    const model = await connect(this.nodes[this.node] as string, {
      ...this.certificates,
      timeout: CONNECT_MS,
      noDelay: true,
      clientProperties: { connection_name: `portico ${this.options.name}` },
    });
    const ended = new Promise<never>((_, reject) => {
      this.interrupt = reject;
    });
    ended.catch(() => undefined);
    if (this.stopped) this.interrupt(new Error('the gateway is stopping'));
    this.watch(model);
    try {
      const up = Promise.race([this.openChannel(model), ended]);
      this.channel = await (this.nodes.length === 1 ? up : within(UP_MS, up));
      this.failures = 0;
      this.options.log.info(`rabbitmq ${this.options.name}: connected`);
      return await ended;
    } catch (error) {
      this.options.onDown(error as Error);
      throw error;
    } finally {
      this.channel = undefined;
      await closeWithin(model);
    }
  }

  private watch(model: ChannelModel): void {
    const { log, name } = this.options;
    const { interrupt } = this;
    this.blocked = undefined;
    model.on('error', interrupt);
    model.on('handler-error', interrupt);
    model.on('close', (error?: Error) => interrupt(error ?? new Error('the connection was closed')));
    model.on('blocked', (reason: string) => {
      this.blocked = reason;
      log.warn({ reason }, `rabbitmq ${name}: takes no messages`);
    });
    model.on('unblocked', () => {
      this.blocked = undefined;
      log.info(`rabbitmq ${name}: takes messages again`);
    });
  }

  private async openChannel(model: ChannelModel): Promise<ConfirmChannel> {
    const { interrupt } = this;
    const channel = await model.createConfirmChannel();
    channel.on('error', interrupt);
    channel.on('handler-error', interrupt);
    channel.on('close', () => interrupt(new Error('the channel was closed')));
    await this.options.onUp(channel);
    return channel;
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.interrupt = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** amqplib takes the heartbeat from the URL's query only; one that is given there stays. */
function withHeartbeat(url: string): string {
  const parsed = new URL(url);
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', String(HEARTBEAT_S));
  return parsed.href;
}

async function closeWithin(model: ChannelModel): Promise<void> {
  // amqplib's close waits for the broker's answer however long that takes; only the socket below can be cut
  const { stream } = model.connection as unknown as { stream: Socket };
  if (stream.destroyed) return;
  const gone = new Promise<void>((resolve) => stream.once('close', () => resolve()));
  const timer = setTimeout(() => stream.destroy(), CLOSE_MS);
  // rejects when the connection is closed already
  const closed = Promise.resolve()
    .then(() => model.close())
    .catch(() => undefined);
  await Promise.race([gone, closed]);
  clearTimeout(timer);
  stream.destroy();
}
