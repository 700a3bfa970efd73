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

export type Api =
  | 'Produce'
  | 'Fetch'
  | 'Metadata'
  | 'ListOffsets'
  | 'GroupCoordinator'
  | 'OffsetFetch'
  | 'OffsetCommit'
  | 'JoinGroup'
  | 'SyncGroup'
  | 'Heartbeat'
  | 'LeaveGroup';

export type Versions = Record<number, { readonly minVersion: number; readonly maxVersion: number }>;
export type WireConnection = Connection;
export type WireCall = Connection.Protocol;

export interface WireOptions {
  readonly host: string;
  readonly port: number;
  readonly clientId: string;
  readonly connectTimeoutMs: number;
  /** kafkajs' log creator. */
  readonly logCreator: unknown;
  readonly ssl: object | null;
  readonly sasl: object | null;
}

export function createConnection({ connectTimeoutMs, logCreator, ...options }: WireOptions): WireConnection {
  return new Connection({
    ...options,
    logger: loggers.createLogger({ level: WARN, logCreator }),
    socketFactory: createSocketFactory(),
    connectionTimeout: connectTimeoutMs,
    requestTimeout: connectTimeoutMs,
    // kafkajs would look through all requests every 100 ms, on every connection; each request has its timer here
    enforceRequestTimeout: false,
    maxInFlightRequests: null,
  });
}

/** kafkajs' best version of a request that the broker knows. */
export function callOf(versions: Versions, api: Api, args: object): WireCall {
  const definition = protocol.requests[api];
  if (definition === undefined) throw new Error(`kafkajs does not know ${api}`);
  return protocol.lookup(versions)(apiKeys[api] as number, definition)(args);
}

/** The first question to a broker: which versions of what it knows. */
export function apiVersionsCall(): WireCall {
  const call = protocol.requests.ApiVersions?.protocol({ version: 2 })();
  if (call === undefined) throw new Error('kafkajs does not know ApiVersions');
  return call;
}

export function apiKeyOf(api: Api | 'SaslAuthenticate'): number {
  return apiKeys[api] as number;
}

/** Kafka's name of an error code, such as `NOT_LEADER_FOR_PARTITION`. */
export function errorType(code: number): string {
  return protocolErrors.createErrorFromCode(code).type;
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
