import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, QstashError, Receiver } from '@upstash/qstash';
import { eventually } from '../support/eventually.js';
import { removeQueueService } from '../support/queue-cleanup.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';

/** Of everything in RabbitMQ and Postgres that this file makes. */
const NAME = 'test_queue_acceptance';

interface Delivery {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const verifier = new Receiver({
  currentSigningKey: TOKENS.currentSigningKey,
  nextSigningKey: TOKENS.nextSigningKey,
});
const deliveries: Delivery[] = [];
let server: Server;
let sink: string;
let gateway: SpawnedGateway;
let client: Client;

/** A destination as its owner would write it: verifies first, 401 when that fails; `/broken` fails, `/work` answers. */
async function handle(delivery: Delivery): Promise<{ status: number; body: string }> {
  await verifier.verify({
    signature: String(delivery.headers['upstash-signature']),
    body: delivery.body,
    url: sink + delivery.path,
  });
  deliveries.push(delivery);
  if (delivery.path === '/broken') return { status: 500, body: 'broken' };
  return { status: 200, body: `done ${delivery.path}` };
}

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      const { url: path = '', method = '', headers } = request;
      handle({ path, method, headers, body }).then(
        (answer) => {
          response.writeHead(answer.status, { 'Retry-After': '0' });
          response.end(answer.body);
        },
        () => {
          response.writeHead(401);
          response.end();
        },
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  sink = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  gateway = await spawnGateway({
    queue: {
      allowedDestinations: ['127.0.0.1'],
      prefix: NAME,
      schema: NAME,
    },
  });
  client = new Client({ baseUrl: `${gateway.url}/queue`, token: TOKENS.queue });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200), 20_000);
});
afterAll(async () => {
  const code = await gateway?.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await removeQueueService(NAME, NAME);
  expect(code).toBe(0);
});

afterEach(() => {
  jest.restoreAllMocks();
});

const at = (path: string, count = 1) =>
  eventually(() => {
    const found = deliveries.filter((delivery) => delivery.path === path);
    expect(found.length).toBeGreaterThanOrEqual(count);
    return found;
  }, 10_000);

it('publishJSON: the destination gets it, verifies it, and its answer comes to the callback', async () => {
  const reply = await client.publishJSON({
    url: `${sink}/work?a=1`,
    body: { hello: 'wörld' },
    headers: { 'My-Header': 'mine' },
    callback: `${sink}/callback`,
  });
  expect(reply.messageId).toMatch(/^msg_/);
  const [delivery] = await at('/work?a=1');
  expect(delivery).toMatchObject({ method: 'POST', body: JSON.stringify({ hello: 'wörld' }) });
  expect(delivery?.headers).toMatchObject({
    'content-type': 'application/json',
    'my-header': 'mine',
    'upstash-message-id': reply.messageId,
    'upstash-retried': '0',
  });
  expect(Object.keys(delivery?.headers ?? {}).filter((name) => name.includes('telemetry'))).toEqual([]);
  const told = JSON.parse((await at('/callback'))[0]?.body ?? '') as Record<string, unknown>;
  expect(told).toMatchObject({
    status: 200,
    sourceMessageId: reply.messageId,
    retried: 0,
    url: `${sink}/work?a=1`,
  });
  expect(Buffer.from(String(told.body), 'base64').toString()).toBe('done /work?a=1');
});

it('publish: method, delay, retries and the failure callback as the SDK sends them', async () => {
  const started = performance.now();
  const reply = await client.publish({
    url: `${sink}/broken`,
    method: 'PUT',
    body: 'text',
    delay: 1,
    retries: 1,
    timeout: '5s',
    failureCallback: `${sink}/failed`,
  });
  const attempts = await at('/broken', 2);
  expect(performance.now() - started).toBeGreaterThanOrEqual(1_000);
  expect(attempts.map(({ method, body }) => [method, body])).toEqual([
    ['PUT', 'text'],
    ['PUT', 'text'],
  ]);
  const told = JSON.parse((await at('/failed'))[0]?.body ?? '') as Record<string, unknown>;
  expect(told).toMatchObject({
    status: 500,
    retried: 1,
    maxRetries: 1,
    sourceMessageId: reply.messageId,
    dlqId: expect.any(String),
  });
});

it('says what is wrong in words that the SDK shows', async () => {
  // the SDK logs every refusal
  jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const wrong = client.publish({ url: `${sink}/work`, retries: 50 });
  await expect(wrong).rejects.toBeInstanceOf(QstashError);
  await expect(wrong).rejects.toMatchObject({ status: 400, message: expect.stringContaining('limit of 5') });
  const stranger = new Client({ baseUrl: `${gateway.url}/queue`, token: 'wrong' });
  await expect(stranger.publish({ url: `${sink}/work` })).rejects.toMatchObject({ status: 401 });
  await expect(client.publish({ url: 'http://10.0.0.1/' })).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('10.0.0.1 is not a public address'),
  });
});
