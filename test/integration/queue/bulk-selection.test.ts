import fc from 'fast-check';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { foreignBodies } from '../../support/queue/foreign-bodies.js';
import {
  type QueueNamespace,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

/** Bulk calls act on what they name: bodies as SDKs before 2026 send them, and bodies that nobody can understand. */
let names: QueueNamespace;
let gateway: RunningGateway;
let receiver: Receiver;

async function call(method: string, path: string, body?: string): Promise<{ status: number; body: never }> {
  const answer = await fetch(`${gateway.url}/queue${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.queue}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body }),
  });
  return { status: answer.status, body: (await answer.json()) as never };
}

async function publish(headers: Record<string, string>, path = '/x'): Promise<string> {
  const answer = await fetch(`${gateway.url}/queue/v2/publish/${receiver.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}`, ...headers },
    body: 'hello',
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { messageId: string }).messageId;
}

const waiting = async () =>
  Number(
    (
      await names.query<{ count: string }>('select count(*) from $schema.messages where finished_at is null')
    )[0]?.count,
  );
const letters = async () =>
  (await call('GET', '/v2/dlq')).body as { messages: { dlqId: string; url: string }[] };

beforeAll(async () => {
  names = queueNamespace();
  receiver = await startReceiver((_, response) => void response.writeHead(500).end());
  gateway = await startGateway({ queue: names.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200), 60_000);
});

afterAll(async () => {
  await gateway.stop();
  await receiver.stop();
  await names.remove();
});

const KEYS = [
  ...['messageIds', 'dlqIds', 'topicName', 'queueName', 'url', 'host', 'path', 'label', 'flowControlKey'],
  ...[
    'scheduleId',
    'callerIp',
    'fromDate',
    'toDate',
    'count',
    'messageIDs',
    'dlqIDs',
    'dlqId',
    '__proto__',
    '',
  ],
];
const foreign = foreignBodies(KEYS);

/** A body that bounds by number or time alone names everything within it, on purpose. */
const namesMany = (body: string) => /"(count|fromDate|toDate)":(?!\[\])/.test(body);

/** Lists that somebody forgot to fill in, of what has one value. */
const UNFILLED = ['{"toDate":[]}', '{"fromDate":[]}', '{"count":[]}', '{"cursor":[]}'];

describe('messages that wait', () => {
  let first: string;

  beforeAll(async () => {
    first = await publish({ 'service-delay': '1h', 'service-label': 'red' });
    await publish({ 'service-delay': '1h', 'service-label': 'a,b' });
    await publish({ 'service-delay': '1h' });
  });

  it('are not touched by a body that names none of them', async () => {
    await fc.assert(
      fc.asyncProperty(
        foreign.filter((body) => !namesMany(body)),
        async (body) => {
          const answer = await call('DELETE', '/v2/messages', body);
          expect([200, 400]).toContain(answer.status);
          if (answer.status === 200) expect(answer.body).toEqual({ cancelled: 0 });
        },
      ),
      { numRuns: 200 },
    );
    expect(await waiting()).toBe(3);
  });

  it.each([
    '{"messageIDs":["msg_x"]}',
    '["msg_x"]',
    'null',
    '5',
    '{}',
    '{"label":null}',
    '{"label":5}',
    '{"label":""}',
    '{"label":[]}',
    '{"messageIds":"msg_x"}]',
    '{"messageIds":["msg_x"],"label":"red"}',
    '{"cursor":"x"}',
    ...UNFILLED,
  ])('%s is refused', async (body) => {
    const answer = await call('DELETE', '/v2/messages', body);
    expect([answer.status, answer.body]).toEqual([400, { error: expect.any(String) }]);
    expect(await waiting()).toBe(3);
  });

  it.each([
    ['{"messageIds":[]}', 0],
    ['{"queueName":"no-such-queue"}', 0],
    ['{"label":"a,b"}', 0],
    ['{"label":"b"}', 1],
    ['{"label":["red","blue"]}', 1],
  ])('%s cancels %i of them', async (body, cancelled) => {
    expect(await call('DELETE', '/v2/messages', body)).toEqual({ status: 200, body: { cancelled } });
  });

  it('are named by id, and all of them by no body at all', async () => {
    await publish({ 'service-delay': '1h' });
    expect((await call('DELETE', '/v2/messages', JSON.stringify({ messageIds: [first] }))).body).toEqual({
      cancelled: 0,
    });
    expect((await call('DELETE', '/v2/messages')).body).toEqual({ cancelled: 2 });
    expect(await waiting()).toBe(0);
  });
});

describe('dead letters', () => {
  beforeAll(async () => {
    for (const path of ['/one', '/two', '/three']) await publish({ 'service-retries': '0' }, path);
    await eventually(async () => expect((await letters()).messages).toHaveLength(3), 60_000);
  });

  it('are neither deleted nor sent again by a body that names none of them', async () => {
    const before = receiver.received.length;
    await fc.assert(
      fc.asyncProperty(
        foreign.filter((body) => !namesMany(body)),
        fc.constantFrom(['DELETE', '/v2/dlq'] as const, ['POST', '/v2/dlq/retry'] as const),
        async (body, [method, path]) => {
          const answer = await call(method, path, body);
          expect([200, 201, 400]).toContain(answer.status);
          if (method === 'DELETE' && answer.status === 200) expect(answer.body).toEqual({ deleted: 0 });
          if (answer.status === 201) expect(answer.body).toMatchObject({ responses: [] });
        },
      ),
      { numRuns: 200 },
    );
    expect((await letters()).messages).toHaveLength(3);
    expect(receiver.received.length).toBe(before);
  });

  it.each([
    ...UNFILLED,
    '{"order":[]}',
    '{"order":"latest"}',
    '{"order":"latestFirst"}',
    '{"responseStatus":"abc"}',
    '{"responseStatus":-1}',
    '{"responseStatus":["500","0x1f4"]}',
    '{"source":"queues"}',
    '{"workflowCreatedAt":"today"}',
  ])('%s is refused by all calls that change them', async (body) => {
    const paths = ['dlq', 'dlq/retry', 'workflows/dlq', 'workflows/dlq/restart', 'workflows/dlq/resume'];
    for (const path of paths) {
      const answer = await call(/dlq$/.test(path) ? 'DELETE' : 'POST', `/v2/${path}`, body);
      expect([path, answer.status]).toEqual([path, 400]);
    }
    expect((await letters()).messages).toHaveLength(3);
  });

  it.each([
    'responseStatus=abc',
    'responseStatus=5xx',
    'responseStatus=%00',
    'source=x',
    'workflowCreatedAt=x',
  ])('are not listed by %s, which none can have', async (query) =>
    expect((await call('GET', `/v2/dlq?${query}`)).status).toBe(400),
  );

  it('are deleted by a filter in the body, one that fits', async () => {
    const body = JSON.stringify({ url: `${receiver.url}/two` });
    expect((await call('DELETE', '/v2/dlq', body)).body).toEqual({ deleted: 1 });
    expect((await call('DELETE', '/v2/dlq', '{"dlqIds":[]}')).body).toEqual({ deleted: 0 });
    const [letter] = (await letters()).messages;
    expect((await call('DELETE', '/v2/dlq', JSON.stringify({ dlqIds: [letter?.dlqId] }))).body).toEqual({
      deleted: 1,
    });
    expect((await letters()).messages).toHaveLength(1);
  });
});
