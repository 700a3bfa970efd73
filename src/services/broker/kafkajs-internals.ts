import Batch from 'kafkajs/src/consumer/batch.js';
import loggers from 'kafkajs/src/loggers/index.js';
import Connection from 'kafkajs/src/network/connection.js';
import RequestQueue from 'kafkajs/src/network/requestQueue/index.js';
import createSocketFactory from 'kafkajs/src/network/socketFactory.js';
import protocolErrors from 'kafkajs/src/protocol/error.js';
import apiKeys from 'kafkajs/src/protocol/requests/apiKeys.js';
import protocol from 'kafkajs/src/protocol/requests/index.js';

// The public API of kafkajs has no fetch at an offset, fails a whole reply for one bad partition, and retries for
// about 9 s where a request has 2: this file takes the wire protocol alone. It is the only one that reaches inside
// the package (2.2.4, pinned), beside client.ts for its public face.

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface ConnectionOptions {
  readonly clientId: string;
  /** For the TCP connect and, once more, for the first exchange; in ms. */
  readonly connectTimeoutMs: number;
  /** kafkajs' log creator. */
  readonly logCreator: unknown;
}

/** The broker was sent a request and has not answered in time. */
export class KafkaTimeout extends Error {
  constructor(api: string, timeoutMs: number) {
    super(`Kafka did not answer ${api} within ${timeoutMs} ms`);
    this.name = 'KafkaTimeout';
  }
}

export type Api = 'Produce' | 'Fetch' | 'Metadata' | 'OffsetFetch' | 'GroupCoordinator' | 'ListOffsets';

/**
 * One TCP connection to one broker. Requests on it are answered in the order sent, one after the other, so whatever
 * may wait long at the broker (a fetch at the end of a log) needs a connection of its own.
 */
export class KafkaConnection {
  private versions: Record<number, { minVersion: number; maxVersion: number }> = {};

  private constructor(
    readonly address: Address,
    private readonly connection: Connection,
  ) {}

  /** @throws kafkajs' KafkaJSConnectionError, or KafkaTimeout when the broker accepts and stays silent */
  static async open(address: Address, options: ConnectionOptions): Promise<KafkaConnection> {
    const connection = new Connection({
      ...address,
      clientId: options.clientId,
      logger: loggers.createLogger({ level: WARN, logCreator: options.logCreator }),
      socketFactory: createSocketFactory(),
      connectionTimeout: options.connectTimeoutMs,
      requestTimeout: options.connectTimeoutMs,
      // kafkajs would look through all requests every 100 ms, on every connection; each request has its timer here
      enforceRequestTimeout: false,
      maxInFlightRequests: null,
    });
    const opened = new KafkaConnection(address, connection);
    await opened.within('connect', options.connectTimeoutMs, connection.connect());
    opened.versions = await opened.apiVersions(options.connectTimeoutMs);
    connection.setVersions(opened.versions);
    return opened;
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
    const definition = protocol.requests[api];
    if (definition === undefined) throw new Error(`kafkajs does not know ${api}`);
    const call = protocol.lookup(this.versions)(apiKeys[api] as number, definition)(args);
    const reply = this.connection.send({
      ...call,
      response: { decode: call.response.decode, parse: async (decoded) => decoded },
    });
    return (await this.within(api, timeoutMs, reply)) as Reply;
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

  private async apiVersions(timeoutMs: number): Promise<typeof this.versions> {
    const call = protocol.requests.ApiVersions?.protocol({ version: 2 })();
    if (call === undefined) throw new Error('kafkajs does not know ApiVersions');
    const reply = (await this.within('ApiVersions', timeoutMs, this.connection.send(call))) as {
      apiVersions: { apiKey: number; minVersion: number; maxVersion: number }[];
    };
    return Object.fromEntries(reply.apiVersions.map((range) => [range.apiKey, range]));
  }

  private async within<T>(api: string, timeoutMs: number, reply: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const timeout = new KafkaTimeout(api, timeoutMs);
        reject(timeout);
        this.close(timeout);
      }, timeoutMs);
    });
    try {
      return await Promise.race([reply, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Kafka's name of an error code, such as `NOT_LEADER_FOR_PARTITION`. */
export function errorType(code: number): string {
  return protocolErrors.createErrorFromCode(code).type;
}

/** The readable records of one partition of a Fetch reply: without control records, aborted transactions and what lies before `offset`. */
export function readableRecords(topic: string, offset: string, partitionData: object) {
  const batch = new Batch(topic, offset, partitionData);
  return {
    messages: batch.messages,
    holdsRecords: batch.rawMessages.length > 0,
    lastOffset: batch.lastOffset(),
  };
}

/**
 * kafkajs' request queue re-arms a timer with a negative delay for ever: about 870 wake-ups a second on every idle
 * connection (measured; issues 1704 and 1751 there). With nothing pending and no throttle there is nothing to check.
 */
export function calmIdleConnections(): void {
  const { prototype } = RequestQueue;
  const original = prototype.scheduleCheckPendingRequests;
  if (original.name === CALMED) return;
  const calmed = {
    [CALMED](this: RequestQueue) {
      if (this.pending.length > 0 || this.throttledUntil > Date.now()) original.call(this);
    },
  };
  prototype.scheduleCheckPendingRequests = calmed[CALMED] as typeof original;
}

/** kafkajs: its level for warnings and errors. */
const WARN = 2;

const CALMED = 'scheduleCheckPendingRequestsWhenAny';
