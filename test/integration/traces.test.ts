import { createLogger } from '../../src/lib/logger.js';
import { services } from '../../src/services/index.js';
import { type KafkaNamespace, kafkaNamespace } from '../support/broker/kafka.js';
import { eventually } from '../support/eventually.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { type Collector, type ReceivedSpan, startCollector } from '../support/otlp-collector.js';
import { queueNamespace, type Receiver, startReceiver } from '../support/queue/queue.js';
import { TOKENS } from '../support/tokens.js';
import { dropSchema } from '../support/vector.js';

const SCHEMA = 'test_traces';
let kafka: KafkaNamespace;
let topic: string;
const namespace = queueNamespace();
const SECRET = 'a-value-that-no-span-may-hold';
let collector: Collector;
let receiver: Receiver;
let gateway: RunningGateway;

const apart = Object.fromEntries(services.map(({ name, probe }) => [name, probe.apart]));
const document = (traces: Record<string, unknown>) => ({
  ...apart,
  vector: { database: { schema: SCHEMA }, indexes: [{ dimension: 2 }] },
  queue: namespace.config,
  traces,
});

beforeAll(async () => {
  kafka = await kafkaNamespace();
  topic = await kafka.topic('traces');
  collector = await startCollector();
  receiver = await startReceiver();
  gateway = await startGateway(document({ endpoint: collector.endpoint, headers: 'x-key=of-the-collector' }));
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await collector?.stop();
  await namespace.remove();
  await kafka?.dispose();
  await dropSchema(SCHEMA);
});

const BASIC = `Basic ${Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64')}`;
let last = 0;
/** A trace that a client began, and its header. */
function clientTrace(flags = '01') {
  last += 1;
  const traceId = `${last}`.padStart(32, 'a');
  return { traceId, spanId: '00f067aa0ba902b7', traceparent: `00-${traceId}-00f067aa0ba902b7-${flags}` };
}

async function call(
  path: string,
  authorization: string,
  traceparent: string,
  body?: unknown,
): Promise<Response> {
  return fetch(gateway.url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization, traceparent },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}
const spansOf = (traceId: string) => collector.spans.filter((span) => span.traceId === traceId);

/** Waits for these, all of one trace. */
async function spans(traceId: string, names: readonly (string | RegExp)[]): Promise<ReceivedSpan[]> {
  return eventually(async () => {
    const own = spansOf(traceId);
    return names.map((name) => {
      const found = own.find((span) =>
        typeof name === 'string' ? span.name === name : name.test(span.name),
      );
      if (found === undefined) throw new Error(`no ${String(name)} among ${own.map((span) => span.name)}`);
      return found;
    });
  });
}

it('a kv command: the request below the span of its client, Redis below the request', async () => {
  const { traceId, spanId, traceparent } = clientTrace();
  const reply = await call('/kv', `Bearer ${TOKENS.kv}`, traceparent, ['ECHO', SECRET]);
  const [request, redis] = (await spans(traceId, ['kv.command', 'redis ECHO'])) as [
    ReceivedSpan,
    ReceivedSpan,
  ];
  expect(request).toMatchObject({
    parentSpanId: spanId,
    kind: 2,
    attributes: {
      'http.request.method': 'POST',
      'http.response.status_code': '200',
      'portico.operation': 'kv.command',
      'portico.request_id': reply.headers.get('x-request-id'),
      'client.address': '127.0.0.1',
    },
    resource: { 'service.name': 'portico' },
  });
  expect(redis).toMatchObject({
    parentSpanId: request.spanId,
    kind: 3,
    attributes: { 'db.system.name': 'redis' },
  });
  const [begun, ended] = [BigInt(redis.startTimeUnixNano), BigInt(redis.endTimeUnixNano)];
  expect(ended >= begun && begun >= BigInt(request.startTimeUnixNano)).toBe(true);
  expect(Math.abs(Number(begun / 1_000_000n) - Date.now())).toBeLessThan(600_000);
  expect(collector.headers[0]).toMatchObject({
    'x-key': 'of-the-collector',
    'content-type': 'application/json',
  });
});

it('a vector query: its statements below it', async () => {
  const { traceId, traceparent } = clientTrace();
  await call('/vector/query', `Bearer ${TOKENS.vector}`, traceparent, {
    vector: [1, 0],
    filter: `a = '${SECRET}'`,
  });
  const [request, postgres] = (await spans(traceId, ['vector.query', /^postgres/])) as [
    ReceivedSpan,
    ReceivedSpan,
  ];
  expect(postgres.attributes['db.system.name']).toBe('postgresql');
  expect(spansOf(traceId).map((span) => span.parentSpanId)).toContain(request.spanId);
});

it('a record: its header carries the trace to whoever reads it, unless it brings one', async () => {
  const { traceId, traceparent } = clientTrace();
  const own = [{ key: 'traceparent', value: 'its-own' }];
  const records = [{ value: SECRET }, { value: SECRET, headers: own }];
  expect((await call(`/broker/produce/${topic}`, BASIC, traceparent, records)).status).toBe(200);
  const [request, produce] = (await spans(traceId, ['broker.produceToTopic', 'kafka produce'])) as [
    ReceivedSpan,
    ReceivedSpan,
  ];
  expect(produce).toMatchObject({
    parentSpanId: request.spanId,
    attributes: { 'messaging.system': 'kafka', 'messaging.batch.message_count': '2' },
  });
  const read = clientTrace();
  const body = { topic, partition: 0, offset: 0, timeout: 5_000 };
  const messages = (await (await call('/broker/fetch', BASIC, read.traceparent, body)).json()) as {
    value: string;
    headers: { key: string; value: string }[];
  }[];
  expect(messages.slice(-2).map(({ headers }) => headers)).toEqual([
    [{ key: 'traceparent', value: `00-${traceId}-${produce.spanId}-01` }],
    own,
  ]);
  await spans(read.traceId, ['broker.fetch', 'kafka fetch']);
});

it('a message of the queue: its delivery is a part of the trace, and the destination gets it', async () => {
  const { traceId, traceparent } = clientTrace();
  await call(`/queue/v2/publish/${receiver.url}/${SECRET}`, `Bearer ${TOKENS.queue}`, traceparent, {});
  const [request, rabbitmq, deliver] = (await spans(traceId, [
    'queue.publish',
    'rabbitmq publish',
    'queue.deliver',
  ])) as [ReceivedSpan, ReceivedSpan, ReceivedSpan];
  expect([rabbitmq.parentSpanId, deliver.parentSpanId]).toEqual([request.spanId, request.spanId]);
  expect(deliver.attributes).toMatchObject({
    'server.address': '127.0.0.1',
    'http.response.status_code': '200',
  });
  expect(receiver.received.at(-1)?.headers.traceparent).toBe(`00-${traceId}-${deliver.spanId}-01`);
});

it('what fails says so, without words of others', async () => {
  const { traceId, traceparent } = clientTrace();
  expect((await call('/kv', `Bearer ${SECRET}`, traceparent, ['PING'])).status).toBe(401);
  const [refused] = await spans(traceId, ['unrouted']);
  expect(refused).toMatchObject({ attributes: { 'http.response.status_code': '401' } });
});

it('a client that takes no part of its trace has none here', async () => {
  const { traceId, traceparent } = clientTrace('00');
  const after = clientTrace();
  await call('/kv', `Bearer ${TOKENS.kv}`, traceparent, ['PING']);
  await call('/kv', `Bearer ${TOKENS.kv}`, after.traceparent, ['PING']);
  await spans(after.traceId, ['kv.command']);
  expect(spansOf(traceId)).toEqual([]);
});

it('no span holds a value, a path or a token', () => {
  const text = JSON.stringify(collector.spans);
  expect(collector.spans.length).toBeGreaterThan(10);
  expect(text).not.toContain(SECRET);
  for (const token of [TOKENS.kv, TOKENS.vector, TOKENS.queue, TOKENS.password])
    expect(text).not.toContain(token);
});

it('a collector that takes nothing costs spans alone, and the log says so once', async () => {
  const lines: string[] = [];
  const log = createLogger('warn', { write: (line) => void lines.push(line) });
  const deaf = await startCollector(503);
  const other = await startGateway({ kv: {}, traces: { endpoint: deaf.endpoint, headers: null } }, {}, log);
  const ping = () =>
    fetch(`${other.url}/kv`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKENS.kv}` },
      body: '["PING"]',
    });
  for (let i = 0; i < 600; i++) expect((await ping()).status).toBe(200);
  await eventually(async () =>
    expect(await (await fetch(`${other.url}/metrics`)).text()).toMatch(
      /portico_traces_spans_total\{outcome="dropped"\} [1-9]/,
    ),
  );
  await other.stop();
  await deaf.stop();
  expect(lines.filter((line) => line.includes('the collector takes no spans'))).toHaveLength(1);
});

it('a share of the traces that begin here is taken, the last ones at a stop', async () => {
  const before = collector.spans.length;
  const other = await startGateway({ kv: {}, traces: { endpoint: collector.endpoint, sample: 0 } });
  const ping = (headers: Record<string, string>) =>
    fetch(`${other.url}/kv`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKENS.kv}`, ...headers },
      body: '["PING"]',
    });
  for (let i = 0; i < 20; i++) await (await ping({})).text();
  const { traceId, traceparent } = clientTrace();
  await (await ping({ traceparent })).text();
  await other.stop();
  expect(new Set(collector.spans.slice(before).map((span) => span.traceId))).toEqual(new Set([traceId]));
});
