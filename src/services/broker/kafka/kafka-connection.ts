import type { Address } from '../../../lib/address.js';
import { within } from '../../../lib/within.js';
import {
  type Api,
  apiKeyOf,
  apiVersionsCall,
  callOf,
  createConnection,
  type Versions,
  type WireConnection,
} from './kafkajs-internals.js';
import { type KafkaSecurity, SASL_REFUSED, saslOf } from './sasl.js';

export interface ConnectionOptions {
  readonly clientId: string;
  /** For TCP, TLS, the first exchange and SASL together, in ms. */
  readonly connectTimeoutMs: number;
  /** kafkajs' log creator. */
  readonly logCreator: unknown;
  readonly security: KafkaSecurity;
}

/** A request whose bytes are written and read here, and not by kafkajs. */
export interface OwnCall<Reply> {
  readonly api: Api;
  readonly version: number;
  readonly encode: () => Buffer;
  readonly decode: (payload: Buffer) => Reply;
}

/** The broker was sent a request and has not answered in time. */
export class KafkaTimeout extends Error {
  constructor(api: string, timeoutMs: number) {
    super(`Kafka did not answer ${api} within ${timeoutMs} ms`);
    this.name = 'KafkaTimeout';
  }
}

/**
 * One TCP connection to one broker. Requests on it are answered in the order sent, one after the other, so whatever
 * may wait long at the broker (a fetch at the end of a log) needs a connection of its own.
 */
export class KafkaConnection {
  private versions: Versions = {};

  private constructor(
    readonly address: Address,
    private readonly connection: WireConnection,
  ) {}

  /** @throws kafkajs' KafkaJSConnectionError, or KafkaTimeout when the broker accepts and stays silent */
  static async open(address: Address, options: ConnectionOptions): Promise<KafkaConnection> {
    const { clientId, connectTimeoutMs, logCreator, security } = options;
    const begin = performance.now();
    const sasl = await saslOf(security);
    const connection = createConnection({
      ...address,
      clientId,
      connectTimeoutMs,
      logCreator,
      ssl: security.tls ?? null,
      sasl,
    });
    const opened = new KafkaConnection(address, connection);
    try {
      await opened.handshake(Math.max(1, connectTimeoutMs - (performance.now() - begin)), sasl !== null);
      return opened;
    } catch (error) {
      // it may have been withdrawn before its time
      if ((error as Error).name === SASL_REFUSED) security.token?.forget();
      opened.close();
      throw error;
    }
  }

  get isOpen(): boolean {
    return this.connection.isConnected();
  }

  /**
   * The decoded reply with every error code left in its place: kafkajs' own parse step would throw the first of them
   * and drop all the rest.
   * @throws KafkaTimeout, after which the connection is closed: what it would still deliver belongs to nobody
   */
  async request<Reply>(api: Api, args: object, timeoutMs: number): Promise<Reply> {
    const call = callOf(this.versions, api, args);
    const reply = this.connection.send({
      ...call,
      response: { decode: call.response.decode, parse: async (decoded) => decoded },
    });
    return (await this.within(api, timeoutMs, reply)) as Reply;
  }

  /** The same for a request of our own making. @throws KafkaTimeout; Error where the broker does not know its version */
  async call<Reply>({ api, version, encode, decode }: OwnCall<Reply>, timeoutMs: number): Promise<Reply> {
    const apiKey = apiKeyOf(api);
    const { minVersion = 0, maxVersion = -1 } = this.versions[apiKey] ?? {};
    if (version < minVersion || version > maxVersion)
      throw new Error(`The broker has ${api} in the versions ${minVersion} to ${maxVersion}, not ${version}`);
    const request = {
      apiKey,
      apiVersion: version,
      apiName: api,
      // of kafkajs' encoder, what it looks at
      encode: async () => {
        const buffer = encode();
        return { buf: buffer, buffer };
      },
    };
    const response = {
      decode: async (payload: unknown) => decode(payload as Buffer),
      parse: async (decoded: unknown) => decoded,
    };
    return (await this.within(api, timeoutMs, this.connection.send({ request, response }))) as Reply;
  }

  /** Resolves when the broker answers at all. */
  async ping(timeoutMs: number): Promise<void> {
    await this.apiVersions(timeoutMs);
  }

  close(reason: Error = new Error('The connection was closed')): void {
    this.connection.requestQueue.rejectAll(reason);
    this.connection.disconnect().catch(() => {});
    this.connection.socket?.destroy();
  }

  private async handshake(timeoutMs: number, hasSasl: boolean): Promise<void> {
    const { connection } = this;
    const end = performance.now() + timeoutMs;
    const left = () => Math.max(1, Math.round(end - performance.now()));
    await this.within('connect', timeoutMs, connection.connect());
    this.versions = await this.apiVersions(left());
    connection.setVersions(this.versions);
    if (!hasSasl) return;
    connection.setSupportAuthenticationProtocol(this.versions[apiKeyOf('SaslAuthenticate')] !== undefined);
    await this.within('SaslAuthenticate', left(), connection.authenticate());
  }

  private async apiVersions(timeoutMs: number): Promise<Versions> {
    const reply = (await this.within('ApiVersions', timeoutMs, this.connection.send(apiVersionsCall()))) as {
      apiVersions: { apiKey: number; minVersion: number; maxVersion: number }[];
    };
    return Object.fromEntries(reply.apiVersions.map((range) => [range.apiKey, range]));
  }

  private async within<T>(api: string, timeoutMs: number, reply: Promise<T>): Promise<T> {
    let timeout: KafkaTimeout | undefined;
    try {
      return await within(timeoutMs, reply, () => {
        timeout = new KafkaTimeout(api, timeoutMs);
        return timeout;
      });
    } finally {
      if (timeout !== undefined) this.close(timeout);
    }
  }
}
