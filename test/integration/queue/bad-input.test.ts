import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { queueNamespace } from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

const namespace = queueNamespace();
let gateway: RunningGateway;

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway?.stop();
  await namespace.remove();
});

const call = (path: string, method: string, body: object | null) =>
  fetch(`${gateway.url}/queue${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.queue}` },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });

const NUL = '\u0000';

it.each<[method: string, path: string, body: object | null]>([
  ['GET', '/v2/messages/%00', null],
  ['DELETE', '/v2/messages/%00', null],
  ['DELETE', '/v2/messages?messageIds=%00', null],
  ['DELETE', '/v2/messages?label=%00', null],
  ['DELETE', '/v2/messages', { messageIds: [NUL] }],
  ['GET', '/v2/events?label=%00', null],
  ['GET', '/v2/dlq/%00', null],
  ['GET', '/v2/dlq?label=%00', null],
  ['DELETE', '/v2/dlq?dlqIds=%00', null],
  ['POST', '/v2/dlq/retry?dlqIds=%00', null],
  ['GET', '/v2/topics/%00', null],
  ['DELETE', '/v2/topics/group/endpoints', { endpoints: [{ name: NUL }] }],
  ['DELETE', '/v2/queues/%00', null],
  ['POST', '/v2/queues/%00/pause', null],
  ['PATCH', '/v2/schedules/%00/pause', null],
  ['GET', '/v2/flowControl?search=%00', null],
  ['POST', '/v2/flowControl/%00/pin?rate=1', null],
])('a NUL character is an error of the sender: %s %s', async (method, path, body) => {
  const endpoints = { endpoints: [{ url: 'https://example.com/' }] };
  expect((await call('/v2/topics/group/endpoints', 'POST', endpoints)).status).toBe(200);
  const reply = await call(path, method, body);
  expect(await reply.json()).toEqual({ error: expect.stringContaining('NUL') });
  expect(reply.status).toBe(400);
});

it('a cron expression where no schedule is made is refused, and nothing is sent', async () => {
  const cron = { 'Upstash-Cron': '* * * * *' };
  const destination = 'https://example.com/';
  const reply = await call('/v2/batch', 'POST', [{ destination, headers: cron }]);
  expect(await reply.json()).toEqual([{ error: expect.stringContaining('upstash-cron') }]);
  const queued = await call(`/v2/enqueue/queue/${destination}?upstash-cron=0+0+1+1+*`, 'POST', null);
  expect(queued.status).toBe(400);
  expect(await namespace.query('select id from $schema.messages')).toEqual([]);
  const made = await call(`/v2/publish/${destination}?upstash-cron=0+0+1+1+*`, 'POST', null);
  expect(await made.json()).toEqual({ scheduleId: expect.stringMatching(/^scd_/) });
  expect(await namespace.query('select id from $schema.messages')).toEqual([]);
});
