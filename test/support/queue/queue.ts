import { randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { backendAddress } from '../environment.js';
import { HANGS_MS } from '../eventually.js';
import { TOKENS } from '../tokens.js';
import { removeQueueService, SHARED_PREFIX } from './queue-cleanup.js';

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** `performance.now()` when it had arrived whole. */
  readonly at: number;
}

export interface Receiver {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly port: number;
  readonly received: readonly Received[];
  stop(): Promise<void>;
}

type Answer = (request: Received, response: ServerResponse, raw: IncomingMessage) => void;

/** A destination on loopback that keeps what it gets; answers 200 unless `answer` does something else. */
export async function startReceiver(
  answer: Answer = (_, response) => void response.end(),
  port = 0,
  address = '127.0.0.1',
): Promise<Receiver> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const entry = { method, url, headers, body: Buffer.concat(chunks), at: performance.now() };
      // jest writes out what an assertion was given each time that it fails: of bodies of 1 MB that took it seconds
      Object.defineProperty(entry, 'body', { enumerable: false });
      received.push(entry);
      answer(entry, response, request);
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${bound}`,
    port: bound,
    received,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Id of the message that was delivered. */
export const messageIdOf = ({ headers }: Received) => headers['upstash-message-id'] as string;

export interface QueueNamespace {
  /** The queue's section of a gateway's configuration: own names, loopback allowed, quick to notice what is lost. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly prefix: string;
  readonly schema: string;
  /** Rows of a query in which `$schema` stands for the namespace's schema. */
  query<Row>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Removes the schema, and what is in the queues. */
  remove(): Promise<void>;
}

/**
 * Names in RabbitMQ and Postgres for a test file: a schema of its own, and the queues that its lane shares.
 * @param prefix of queues of its own, for a second service beside the first one
 */
export function queueNamespace(
  change: Readonly<Record<string, unknown>> = {},
  prefix: string = SHARED_PREFIX,
): QueueNamespace {
  const name = `test_queue_${randomBytes(4).toString('hex')}`;
  // kept connections: each login costs both sides milliseconds of CPU, and tests look often
  const database = new pg.Pool({
    connectionString: backendAddress('PORTICO_DATABASE_URL'),
    idleTimeoutMillis: 10_000,
  });
  // a test may end Postgres under it: the query that breaks says so, the event would end the process of the tests
  database.on('error', () => undefined);
  const query = async <Row>(sql: string, values: readonly unknown[] = []): Promise<Row[]> =>
    (await database.query(sql.replaceAll('$schema', name), [...values])).rows as Row[];
  return {
    config: {
      prefix,
      schema: name,
      allowedDestinations: ['127.0.0.1'],
      leaseMs: 10_000,
      sweepIntervalMs: 500,
      sweepGraceMs: 10_000,
      ...change,
    },
    prefix,
    schema: name,
    query,
    remove: async () => {
      await database.end();
      await removeQueueService(name, prefix);
    },
  };
}

export interface Published {
  readonly status: number;
  readonly headers: Headers;
  readonly body: { messageId?: string; url?: string; error?: string };
}

/** `POST /queue/v2/publish/<destination>` */
export async function publish(
  gateway: { readonly url: string },
  destination: string,
  headers: Readonly<Record<string, string>> = {},
  body: string | Buffer = '',
): Promise<Published> {
  const reply = await fetch(`${gateway.url}/queue/v2/publish/${destination}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}`, ...headers },
    body: body as string,
  });
  return { status: reply.status, headers: reply.headers, body: (await reply.json()) as Published['body'] };
}

/**
 * The same, and again as long as it is refused for now (503), as senders do: of many at once a busy machine refuses some.
 * Whatever came of those, the message that was taken has the id that is returned.
 */
export async function publishUntilTaken(...request: Parameters<typeof publish>): Promise<Published> {
  const end = performance.now() + HANGS_MS;
  for (;;) {
    const reply = await publish(...request);
    if (reply.status !== 503 || performance.now() > end) return reply;
    await sleep(1_000 * Number(reply.headers.get('retry-after')));
  }
}
