import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type KafkaNamespace, kafkaNamespace } from '../broker/kafka.js';
import { eventually } from '../eventually.js';
import { removeQueueService, SHARED_PREFIX } from '../queue/queue-cleanup.js';
import { type SpawnedGateway, spawnGateway } from '../spawned-gateway.js';
import { TOKENS } from '../tokens.js';
import { dropSchema } from '../vector.js';

/** Markup that must be shown as text, wherever a name can have it. */
export const HOSTILE = '<script>document.title="broken"</script><img src=x onerror=alert(1)>';

const QUEUE_SCHEMA = 'test_console_queue';
const VECTOR_SCHEMA = 'test_console_vector';

export const CREDENTIALS = {
  kv: `Bearer ${TOKENS.kv}`,
  kvReadOnly: `Bearer ${TOKENS.kvReadOnly}`,
  vector: `Bearer ${TOKENS.vector}`,
  vectorReadOnly: `Bearer ${TOKENS.vectorReadOnly}`,
  broker: `Basic ${Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64')}`,
  queue: `Bearer ${TOKENS.queue}`,
  metrics: `Bearer ${TOKENS.metrics}`,
} as const;

export const ALL = [
  CREDENTIALS.kv,
  CREDENTIALS.vector,
  CREDENTIALS.broker,
  CREDENTIALS.queue,
  CREDENTIALS.metrics,
];

/** A gateway with all four services, something in each, and a receiver of its messages. */
export interface ConsoleSite {
  readonly url: string;
  readonly gateway: SpawnedGateway;
  readonly kafka: KafkaNamespace;
  /** `/broken` answers 500, all else 200. */
  readonly receiver: string;
  /** What came to the receiver so far, as method and path. */
  readonly received: readonly string[];
  /** From now on `/broken` answers 200, too. */
  mend(): void;
  call(
    path: string,
    init: { method?: string; headers?: Record<string, string>; body?: unknown; as?: string },
  ): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startConsoleSite(): Promise<ConsoleSite> {
  await dropSchema(VECTOR_SCHEMA);
  await removeQueueService(QUEUE_SCHEMA);
  const kafka = await kafkaNamespace();
  const received: string[] = [];
  let isBroken = true;
  const receiver = createServer((request, response) => {
    received.push(`${request.method} ${request.url}`);
    const isBad = isBroken && request.url?.startsWith('/broken') === true;
    request.resume();
    response.writeHead(isBad ? 500 : 200, { 'Content-Type': 'application/json' });
    response.end(isBad ? '{"error":"the shop is closed"}' : '{"ok":true}');
  });
  const address = await listenOn(receiver);
  const gateway = await spawnGateway({
    kv: {},
    broker: {},
    vector: {
      database: { schema: VECTOR_SCHEMA },
      indexes: [
        {
          name: 'default',
          dimension: 64,
          token: TOKENS.vector,
          readOnlyToken: TOKENS.vectorReadOnly,
        },
      ],
    },
    queue: {
      schema: QUEUE_SCHEMA,
      prefix: SHARED_PREFIX,
      allowedDestinations: ['127.0.0.1'],
    },
    http: { metricsToken: TOKENS.metrics },
  });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
  return {
    url: `${gateway.url}/console/`,
    gateway,
    kafka,
    receiver: address,
    received,
    mend: () => {
      isBroken = false;
    },
    call: async (path, { method = 'POST', headers = {}, body, as }) => {
      const reply = await fetch(gateway.url + path, {
        method,
        headers: { ...headers, ...(as === undefined ? {} : { authorization: as }) },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await reply.text();
      if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
      return text === '' ? undefined : (JSON.parse(text) as unknown);
    },
    stop: async () => {
      expect(await gateway.stop()).toBe(0);
      await new Promise((resolve) => receiver.close(resolve));
      await kafka.dispose();
      await dropSchema(VECTOR_SCHEMA);
      await removeQueueService(QUEUE_SCHEMA);
    },
  };
}

async function listenOn(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
