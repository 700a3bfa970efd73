import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  publish,
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

const LIMIT = 40;
const namespace = queueNamespace({
  maxRequestsPerDay: LIMIT,
  readOnlyToken: 'read-only-token-of-the-queue-tests',
});
const gateways: RunningGateway[] = [];
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  for (let i = 0; i < 2; i++) gateways.push(await startGateway({ queue: namespace.config }));
  for (const { url } of gateways)
    await eventually(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  await receiver?.stop();
  await namespace.remove();
});

const call = async (
  path: string,
  { method = 'GET', token = TOKENS.queue, body, headers = {}, on = 0 }: CallOptions = {},
) => {
  const reply = await fetch(`${gateways[on]?.url}/queue${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...headers },
    ...(body === undefined ? {} : { body }),
  });
  return {
    status: reply.status,
    headers: reply.headers,
    body: (await reply.json()) as Record<string, never>,
  };
};
interface CallOptions {
  method?: string;
  token?: string;
  body?: string;
  headers?: Record<string, string>;
  on?: number;
}
const at = (path: string) => receiver.received.filter(({ url }) => url === path);

it('run a schedule once each time, whichever comes first, and only the newest of the times that were missed', async () => {
  const created = await call(`/v2/schedules/${receiver.url}/tick`, {
    method: 'POST',
    headers: { 'upstash-cron': '0 0 1 1 *', 'upstash-forward-x-tick': 'yes' },
    body: 'tick',
  });
  const { scheduleId } = created.body as unknown as { scheduleId: string };
  for (let time = 1; time <= 5; time++) {
    await namespace.query("update $schema.schedules set next_at = now() - interval '3 years' where id = $1", [
      scheduleId,
    ]);
    await eventually(() => expect(at('/tick').length).toBe(time));
  }
  const [delivered] = at('/tick');
  expect(String(delivered?.body)).toBe('tick');
  expect(delivered?.headers).toMatchObject({ 'upstash-schedule-id': scheduleId, 'x-tick': 'yes' });
  const { body } = await call(`/v2/schedules/${scheduleId}`, { on: 1 });
  expect(Object.keys(body)).toEqual(expect.arrayContaining(['lastScheduleTime', 'nextScheduleTime']));
  await eventually(async () =>
    expect(Object.values((await call(`/v2/schedules/${scheduleId}`)).body.lastScheduleStates ?? {})).toEqual([
      'SUCCESS',
    ]),
  );
  await call(`/v2/schedules/${scheduleId}/pause`, { method: 'PATCH' });
  await namespace.query('update $schema.schedules set next_at = now()');
  await publish(gateways[0] as RunningGateway, `${receiver.url}/after-pause`);
  await eventually(() => expect(at('/after-pause')).toHaveLength(1));
  expect(at('/tick')).toHaveLength(5);
});

it('run the other schedules although one cannot be run', async () => {
  const create = async (path: string) =>
    (
      await call(`/v2/schedules/${receiver.url}${path}`, {
        method: 'POST',
        headers: { 'upstash-cron': '0 0 1 1 *' },
      })
    ).body as unknown as { scheduleId: string };
  const ill = await create('/ill');
  const well = await create('/well');
  await namespace.query("update $schema.schedules set cron = 'none' where id = $1", [ill.scheduleId]);
  const due = `update $schema.schedules set next_at = now() - case id when $1 then 2 else 1 end * interval '1 minute'`;
  await namespace.query(`${due} where id in ($1, $2)`, [ill.scheduleId, well.scheduleId]);
  await eventually(() => expect(at('/well')).toHaveLength(1));
  expect(at('/ill')).toHaveLength(0);
  await call(`/v2/schedules/${ill.scheduleId}`, { method: 'DELETE' });
});

it('rotate the signing keys together', async () => {
  const before = (await call('/v2/keys')).body;
  expect(before).toEqual({ current: TOKENS.currentSigningKey, next: TOKENS.nextSigningKey });
  const rotated = (await call('/v2/keys/rotate', { method: 'POST' })).body;
  expect(rotated).toEqual({ current: TOKENS.nextSigningKey, next: expect.stringMatching(/^sig_.{32}$/) });
  expect((await call('/v2/keys', { on: 1 })).body).toEqual(rotated);
});

it('let the read-only token look and change nothing', async () => {
  const token = 'read-only-token-of-the-queue-tests';
  for (const path of ['/v2/dlq', '/v2/events', '/v2/topics', '/v2/schedules', '/v2/queues', '/v1/quota'])
    expect(await call(path, { token })).toMatchObject({ status: 200 });
  for (const [method, path] of [
    ['POST', `/v2/publish/${receiver.url}/no`],
    ['DELETE', '/v2/messages'],
    ['DELETE', '/v2/topics/x'],
    ['POST', '/v2/flowControl/x/pause'],
    ['POST', '/v2/keys/rotate'],
    ['GET', '/v2/keys'],
  ] as const)
    expect(await call(path, { method, token })).toMatchObject({ status: 403 });
});

it('count the messages of a day together, and refuse what is over the limit', async () => {
  const replies = await Promise.all(
    Array.from({ length: LIMIT + 20 }, (_, i) =>
      publishUntilTaken(gateways[i % 2] as RunningGateway, `${receiver.url}/counted`),
    ),
  );
  const [used] = await namespace.query<{ messages: string }>('select messages from $schema.daily_usage');
  expect(used?.messages).toBe(String(LIMIT));
  const refused = replies.filter(({ status }) => status === 429);
  // five messages of a schedule, one of another and the one beside them were counted before
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(LIMIT - 7);
  expect(refused[0]?.body.error).toContain('maxRequestsPerDay');
  expect(refused[0]?.headers.get('ratelimit-limit')).toBe(String(LIMIT));
  expect(refused[0]?.headers.get('ratelimit-remaining')).toBe('0');
  expect(Number(refused[0]?.headers.get('ratelimit-reset'))).toBeGreaterThan(Date.now() / 1_000);
  expect(
    (await call('/v2/batch', { method: 'POST', body: `[{"destination":"${receiver.url}/b"}]` })).status,
  ).toBe(429);
});
