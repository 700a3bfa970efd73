import { type Client, QstashError } from '@upstash/qstash';
import { eventually } from '../support/eventually.js';
import { type SdkSite, startSdkSite } from '../support/queue/queue-sdk.js';
import { TOKENS } from '../support/tokens.js';

let site: SdkSite;
let client: Client;
let sink: string;
let at: SdkSite['at'];

beforeAll(async () => {
  site = await startSdkSite('test_queue_control', { sweepIntervalMs: 500, maxTopics: 2 }, ({ path }) => {
    if (path.startsWith('/broken')) return { status: 500, body: 'broken' };
    return path.startsWith('/slow') ? { afterMs: 300 } : {};
  });
  ({ client, sink, at } = site);
});
afterAll(() => site?.stop());
beforeEach(() => {
  // the SDK logs every refusal
  jest.spyOn(console, 'error').mockImplementation(() => undefined);
});
afterEach(() => {
  jest.restoreAllMocks();
});

const bodies = async (path: string, count: number) => (await at(path, count)).map(({ body }) => body);

it('URL groups: endpoints added, changed and removed; a message for each of them', async () => {
  const name = 'a-group';
  const { urlGroups } = client;
  await urlGroups.addEndpoints({
    name,
    endpoints: [{ url: `${sink}/g1`, name: 'one' }, { url: `${sink}/g2` }],
  });
  const group = await urlGroups.get(name);
  expect(group).toMatchObject({
    name,
    endpoints: [{ url: `${sink}/g1`, name: 'one' }, { url: `${sink}/g2` }],
  });
  expect(group.createdAt).toBeGreaterThan(Date.now() - 60_000);
  const replies = await client.publishJSON({ urlGroup: name, body: { to: 'all' } });
  expect(replies.map(({ url }) => url)).toEqual([`${sink}/g1`, `${sink}/g2`]);
  const [first] = await at('/g1');
  await at('/g2');
  expect(first?.headers).toMatchObject({ 'upstash-topic-name': name, 'upstash-caller-ip': '127.0.0.1' });
  await urlGroups.addEndpoints({ name, endpoints: [{ url: `${sink}/g3`, name: 'one' }] });
  expect((await urlGroups.get(name)).endpoints).toEqual([
    { url: `${sink}/g2` },
    { url: `${sink}/g3`, name: 'one' },
  ]);
  await urlGroups.removeEndpoints({ name, endpoints: [{ url: `${sink}/g2` }] });
  expect((await urlGroups.list()).map((entry) => [entry.name, entry.endpoints.length])).toEqual([[name, 1]]);
  await urlGroups.addEndpoints({ name: 'second', endpoints: [{ url: `${sink}/g4` }] });
  const third = urlGroups.addEndpoints({ name: 'third', endpoints: [{ url: `${sink}/g5` }] });
  await expect(third).rejects.toMatchObject({ status: 412, message: expect.stringContaining('maxTopics') });
  await urlGroups.delete('second');
  await urlGroups.delete('second');
  await urlGroups.removeEndpoints({ name, endpoints: [{ name: 'one' }] });
  await expect(urlGroups.get(name)).rejects.toMatchObject({ status: 404 });
  await expect(client.publish({ urlGroup: name, body: 'x' })).rejects.toMatchObject({ status: 404 });
});

it('a batch: one reply an entry, in order; a bad entry is told and the others are sent', async () => {
  await client.urlGroups.addEndpoints({
    name: 'g',
    endpoints: [{ url: `${sink}/b1` }, { url: `${sink}/b2` }],
  });
  const replies: unknown[] = await client.batchJSON([
    { url: `${sink}/b3`, body: { n: 1 }, headers: { 'X-A': 'a' } },
    { url: 'ftp://nowhere', body: {} },
    { urlGroup: 'g', body: { n: 2 } },
    { url: `${sink}/b4`, body: {}, retries: 99 },
    { queueName: 'batched', url: `${sink}/b5`, body: { n: 3 } },
  ]);
  expect(replies).toEqual([
    { messageId: expect.stringMatching(/^msg_/), url: `${sink}/b3` },
    { error: expect.stringContaining('scheme ftp') },
    [expect.objectContaining({ url: `${sink}/b1` }), expect.objectContaining({ url: `${sink}/b2` })],
    { error: expect.stringContaining('limit of 5') },
    expect.objectContaining({ url: `${sink}/b5` }),
  ]);
  const [delivered] = await at('/b3');
  expect(delivered).toMatchObject({ body: '{"n":1}', headers: expect.objectContaining({ 'x-a': 'a' }) });
  expect(await bodies('/b2', 1)).toEqual(['{"n":2}']);
  expect(await bodies('/b5', 1)).toEqual(['{"n":3}']);
  await client.urlGroups.delete('g');
});

it('deduplication: by id and by content, answered with the earlier message', async () => {
  const first = await client.publish({ url: `${sink}/dedup`, body: '1', deduplicationId: 'same' });
  const second = await client.publish({ url: `${sink}/dedup`, body: '2', deduplicationId: 'same' });
  expect(second).toMatchObject({ messageId: first.messageId, deduplicated: true });
  const content = { url: `${sink}/dedup`, body: '3', contentBasedDeduplication: true };
  const third = await client.publish(content);
  expect(await client.publish(content)).toMatchObject({ messageId: third.messageId, deduplicated: true });
  expect(await client.publish({ ...content, body: '4' })).not.toHaveProperty('deduplicated');
  expect((await bodies('/dedup', 3)).sort()).toEqual(['1', '3', '4']);
});

it('messages: looked at and cancelled, one, several and by filter', async () => {
  const publish = (path: string, more = {}) =>
    client.publish({ url: sink + path, body: 'hidden', delay: '1h', ...more });
  const { messageId } = await publish('/later', {
    headers: { 'X-Secret': 's', 'X-Open': 'o' },
    label: 'mine',
    redact: { body: true, header: ['X-Secret'] },
    callback: `${sink}/cb`,
    retryDelay: '1000 * (1 + retried)',
  });
  const message = await client.messages.get(messageId);
  expect(message).toMatchObject({
    messageId,
    url: `${sink}/later`,
    method: 'POST',
    body: expect.stringMatching(/^REDACTED:[0-9a-f]{64}$/),
    header: { 'X-Secret': [expect.stringMatching(/^REDACTED:/)], 'X-Open': ['o'] },
    maxRetries: 3,
    callback: `${sink}/cb`,
    label: 'mine',
    retryDelayExpression: '1000 * (1 + retried)',
    callerIp: '127.0.0.1',
  });
  expect(Number(message.notBefore) - Number(message.createdAt)).toBe(3_600_000);
  expect(await client.messages.cancel(messageId)).toEqual({ cancelled: 1 });
  await expect(client.messages.cancel(messageId)).rejects.toMatchObject({ status: 404 });
  const some = await Promise.all([publish('/c1'), publish('/c2'), publish('/c3', { label: 'x' })]);
  const ids = some.map((reply) => reply.messageId);
  expect(await client.messages.cancel([ids[0] as string, 'msg_none'])).toEqual({ cancelled: 1 });
  expect(await client.messages.cancel({ filter: { label: 'x' } })).toEqual({ cancelled: 1 });
  expect(await client.messages.cancel({ all: true })).toEqual({ cancelled: 1 });
  expect(await client.messages.cancel([])).toEqual({ cancelled: 0 });
  await expect(client.messages.get('msg_none')).rejects.toMatchObject({ status: 404 });
});

it('dead letters: listed, read, sent again and removed', async () => {
  const dead = async (path: string, more = {}) =>
    (await client.publish({ url: sink + path, body: path, retries: 0, ...more })).messageId;
  const first = await dead('/broken/1', { label: 'l1', headers: { 'X-K': 'k' } });
  await dead('/broken/2');
  await dead('/broken/3');
  const { messages } = await eventually(async () => {
    const page = await client.dlq.listMessages();
    expect(page.messages).toHaveLength(3);
    return page;
  });
  expect(messages.find(({ messageId }) => messageId === first)).toMatchObject({
    messageId: first,
    dlqId: expect.stringMatching(/^\d+-\d+$/),
    url: `${sink}/broken/1`,
    responseStatus: 500,
    responseBody: 'broken',
    responseHeader: expect.objectContaining({ 'Retry-After': ['0'] }),
    header: expect.objectContaining({ 'X-K': ['k'] }),
    body: '/broken/1',
    maxRetries: 0,
    label: 'l1',
  });
  const page = await client.dlq.listMessages({ count: 2 });
  expect(page.messages).toHaveLength(2);
  const rest = await client.dlq.listMessages({ count: 2, cursor: page.cursor as string });
  expect(rest).toMatchObject({ messages: [expect.anything()] });
  expect(rest.cursor).toBeUndefined();
  expect((await client.dlq.listMessages({ filter: { label: 'l1' } })).messages).toHaveLength(1);
  expect((await client.dlq.listMessages({ filter: { responseStatus: 404 } })).messages).toHaveLength(0);
  const letter = (path: string) => messages.find(({ url }) => url === sink + path)?.dlqId as string;
  const again = await client.dlq.retry(letter('/broken/1'));
  expect(again.responses).toEqual([{ messageId: expect.stringMatching(/^msg_/) }]);
  expect(again.responses[0]?.messageId).not.toBe(first);
  expect((await at('/broken/1', 2))[1]).toMatchObject({ body: '/broken/1', headers: { 'x-k': 'k' } });
  await client.dlq.delete(letter('/broken/2'));
  await expect(client.dlq.delete(letter('/broken/2'))).rejects.toMatchObject({ status: 404 });
  await eventually(async () => expect((await client.dlq.listMessages()).messages).toHaveLength(2));
  expect(await client.dlq.delete({ all: true })).toMatchObject({ deleted: 2 });
  expect((await client.dlq.listMessages()).messages).toEqual([]);
});

it('the log: all states, filters, pages from the newest on', async () => {
  const failed = await client.publish({ url: `${sink}/broken/log`, body: 'b', retries: 1, label: 'log' });
  const ok = await client.publish({ url: `${sink}/fine`, body: 'b', label: 'log', timeout: 5 });
  const states = async (id: string) =>
    (await client.logs({ filter: { messageId: id } })).logs.map(({ state }) => state).reverse();
  await eventually(async () =>
    expect(await states(failed.messageId)).toEqual([
      ...['CREATED', 'ACTIVE', 'ERROR', 'RETRY', 'ACTIVE', 'ERROR', 'FAILED'],
    ]),
  );
  await eventually(async () =>
    expect(await states(ok.messageId)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']),
  );
  const { logs } = await client.logs({ filter: { label: 'log', state: 'ERROR' } });
  expect(logs).toHaveLength(2);
  expect(logs[0]).toMatchObject({
    messageId: failed.messageId,
    url: `${sink}/broken/log`,
    responseStatus: 500,
    body: Buffer.from('b').toString('base64'),
    responseBody: Buffer.from('broken').toString('base64'),
    time: expect.any(Number),
  });
  const seen: unknown[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.logs({ count: 3, filter: { label: 'log' }, ...(cursor ? { cursor } : {}) });
    seen.push(...page.logs);
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(seen).toHaveLength(10);
  const wrong = fetch(`${site.gateway.url}/queue/v2/events?messageid=x`, {
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });
  expect((await wrong).status).toBe(400);
  await client.dlq.delete({ all: true });
});

it('queues: one after the other, with their parallelism, paused and resumed', async () => {
  const queue = client.queue({ queueName: 'fifo' });
  for (let n = 0; n < 5; n++) await queue.enqueue({ url: `${sink}/slow/fifo`, body: String(n) });
  expect(await queue.get()).toMatchObject({ name: 'fifo', parallelism: 1, paused: false });
  const arrived = await at('/slow/fifo', 5);
  expect(arrived.map(({ body }) => body)).toEqual(['0', '1', '2', '3', '4']);
  for (const [i, { at: time }] of arrived.entries())
    if (i > 0) expect(time - (arrived[i - 1]?.at ?? 0)).toBeGreaterThan(290);
  await eventually(async () => expect((await queue.get()).lag).toBe(0));
  await queue.pause();
  await queue.enqueueJSON({ url: `${sink}/paused`, body: {} });
  expect(await queue.get()).toMatchObject({ paused: true, lag: 1 });
  await queue.resume();
  await at('/paused');
  await queue.upsert({ parallelism: 3 });
  expect((await queue.list()).find(({ name }) => name === 'fifo')).toMatchObject({ parallelism: 3 });
  await queue.delete();
  await expect(queue.get()).rejects.toMatchObject({ status: 404 });
});

it('flow control: attempts at once, pinned and paused', async () => {
  const flowControl = { key: 'some/key', parallelism: 1 };
  const started = performance.now();
  for (let n = 0; n < 4; n++)
    await client.publish({ url: `${sink}/slow/flow`, body: String(n), flowControl });
  await at('/slow/flow', 4);
  expect(performance.now() - started).toBeGreaterThan(3 * 290);
  await eventually(async () =>
    expect(await client.flowControl.get('some/key')).toMatchObject({
      flowControlKey: 'some/key',
      parallelismMax: 1,
      parallelismCount: 0,
      waitListSize: 0,
    }),
  );
  await client.flowControl.pause('some/key');
  await client.publish({ url: `${sink}/flow-paused`, body: '', flowControl });
  await eventually(async () =>
    expect(await client.flowControl.get('some/key')).toMatchObject({ isPaused: true, waitListSize: 1 }),
  );
  await client.flowControl.pin('some/key', { parallelism: 2, rate: 5, period: 60 });
  await client.flowControl.resume('some/key');
  await at('/flow-paused');
  expect(await client.flowControl.get('some/key')).toMatchObject({
    parallelismMax: 2,
    rateMax: 5,
    ratePeriod: 60,
    isPinnedParallelism: true,
    isPinnedRate: true,
    isPaused: false,
  });
  await client.flowControl.unpin('some/key', { parallelism: true, rate: true });
  expect(await client.flowControl.get('some/key')).toMatchObject({ isPinnedRate: false });
  expect(await client.flowControl.getGlobalParallelism()).toMatchObject({ parallelismMax: 2_200 });
});

it('schedules: created, replaced, listed, paused, deleted; refused when malformed', async () => {
  const { schedules } = client;
  const { scheduleId } = await schedules.create({
    destination: `${sink}/tick?a=1`,
    cron: 'CRON_TZ=Europe/Berlin 0 4 * * *',
    body: 'tick',
    headers: { 'X-Tick': 't' },
    retries: 1,
    delay: 5,
    label: 'scheduled',
  });
  const schedule = await schedules.get(scheduleId);
  expect(schedule).toMatchObject({
    scheduleId,
    cron: 'CRON_TZ=Europe/Berlin 0 4 * * *',
    destination: `${sink}/tick?a=1`,
    method: 'POST',
    body: 'tick',
    header: { 'X-Tick': ['t'] },
    retries: 1,
    delay: 5,
    isPaused: false,
  });
  expect(schedule.nextScheduleTime).toBeGreaterThan(Date.now());
  await schedules.pause({ schedule: scheduleId });
  expect((await schedules.get(scheduleId)).isPaused).toBe(true);
  await schedules.resume({ schedule: scheduleId });
  await schedules.create({ destination: `${sink}/tick`, cron: '* * * * *', scheduleId });
  const replaced = (await schedules.list()).find((entry) => entry.scheduleId === scheduleId);
  expect(replaced).toMatchObject({ cron: '* * * * *', retries: 3 });
  expect(replaced).not.toHaveProperty('body');
  await schedules.delete(scheduleId);
  await expect(schedules.get(scheduleId)).rejects.toMatchObject({ status: 404 });
  const bad = schedules.create({ destination: `${sink}/tick`, cron: 'often' });
  await expect(bad).rejects.toBeInstanceOf(QstashError);
  await expect(bad).rejects.toMatchObject({ status: 400, message: expect.stringContaining('cron') });
});
