import { connect } from 'node:net';
import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';
import type { BrokerRecord } from '../../support/broker/kafka.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { TOKENS } from '../../support/tokens.js';

type Groups = {
  name: string;
  instances: { name: string; topics: { topic: string; partitions: number[] }[] }[];
}[];

const EARLIEST = { 'Kafka-Auto-Offset-Reset': 'earliest' };
const BY_HAND = { ...EARLIEST, 'Broker-Enable-Auto-Commit': 'false' };

const { kafka, call, url } = brokerUnderTest({
  idleTimeoutMs: 6_000,
  replyRecords: 50,
  replyBytes: 16 * 1024 * 1024,
});
let next = 0;

/** A topic with records `v0`, `v1` ..., and the name of a group that nobody uses. */
async function fresh({ records = 0, partitions = 1 } = {}) {
  const id = `c${next++}`;
  const topic = await kafka.topic(id, partitions);
  await produce(topic, records, partitions);
  return { topic, group: kafka.name(`g-${id}`) };
}

async function produce(topic: string, records: number, partitions = 1, from = 0): Promise<void> {
  if (records === 0) return;
  const inputs = Array.from({ length: records }, (_, i) => ({
    value: `v${from + i}`,
    partition: i % partitions,
  }));
  expect((await call(`/produce/${topic}`, inputs)).status).toBe(200);
}

const consume = (group: string, instance: string, topic: string, headers = {}, timeout = 30_000) =>
  call(`/consume/${group}/${instance}/${topic}?timeout=${timeout}`, undefined, { headers });
/** Resolves when the instance has joined, which has no record to give. */
const joined = (group: string, instance: string, topic: string) =>
  eventually(async () => {
    const { headers, body } = await consume(group, instance, topic, {}, 500);
    expect([headers.get('broker-consumer-state'), body]).toEqual(['joined', []]);
  });
const remove = (group: string, instance: string) =>
  call<Failure>(`/delete-consumer/${group}/${instance}`, undefined, { method: 'DELETE' });
const values = ({ body }: { body: BrokerRecord[] }) => body.map(({ value }) => value);
const valuesFrom = (from: number, count: number) => Array.from({ length: count }, (_, i) => `v${from + i}`);

test('the first call joins within its timeout, further calls read on, order is kept', async () => {
  const { topic, group } = await fresh({ records: 120 });
  const first = await consume(group, 'i', topic, EARLIEST);
  expect(values(first)).toEqual(valuesFrom(0, 50));
  expect(first.headers.get('broker-consumer-state')).toBe('joined');
  expect(values(await consume(group, 'i', topic))).toEqual(valuesFrom(50, 50));
  expect(values(await consume(group, 'i', topic))).toEqual(valuesFrom(100, 20));
  const empty = await consume(group, 'i', topic, {}, 300);
  expect(empty.body).toEqual([]);
  expect(empty.ms).toBeGreaterThan(290);
  expect(empty.ms).toBeLessThan(PROMPT_MS);
});

test('without earliest it begins at the end', async () => {
  const { topic, group } = await fresh({ records: 3 });
  await joined(group, 'i', topic);
  await produce(topic, 1, 1, 3);
  expect(values(await consume(group, 'i', topic))).toEqual(['v3']);
});

test('a waiting call is answered as soon as there is a record', async () => {
  const { topic, group } = await fresh();
  await joined(group, 'i', topic);
  const waiting = consume(group, 'i', topic, {}, 20_000);
  await produce(topic, 1);
  const answer = await waiting;
  expect(values(answer)).toEqual(['v0']);
  expect(answer.ms).toBeLessThan(PROMPT_MS);
});

test('calls at the same time take turns: no record twice, none lost', async () => {
  const { topic, group } = await fresh({ records: 200, partitions: 4 });
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => consume(group, 'i', topic, EARLIEST, 3_000)),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const all = answers.flatMap(values);
  await eventually(async () => {
    all.push(...values(await consume(group, 'i', topic, {}, 200)));
    expect(all.length).toBeGreaterThanOrEqual(200);
  });
  expect(new Set(all).size).toBe(all.length);
  expect(all).toHaveLength(200);
});

test('a waiting call whose client leaves takes nothing with it', async () => {
  const { topic, group } = await fresh();
  await joined(group, 'i', topic);
  const left = new AbortController();
  const waiting = call(`/consume/${group}/i/${topic}?timeout=20000`, undefined, { signal: left.signal });
  left.abort();
  await expect(waiting).rejects.toThrow();
  await produce(topic, 1);
  expect(values(await consume(group, 'i', topic))).toEqual(['v0']);
});

test('records of a reply that could not be sent are handed out again', async () => {
  const { topic, group } = await fresh();
  // control characters are six times as long in JSON: 21 MB, more than the system's buffers take from the gateway
  const big = '\u0001'.repeat(900_000);
  for (let i = 0; i < 4; i++) await call(`/produce/${topic}`, { value: big });
  await requestAndVanish(`/broker/consume/${group}/i/${topic}?timeout=30000`);
  const again: BrokerRecord[] = [];
  while (again.length < 4) again.push(...(await consume(group, 'i', topic)).body);
  expect(again.map(({ offset, value }) => [offset, value.length])).toEqual(
    [0, 1, 2, 3].map((offset) => [offset, big.length]),
  );
});

test('HEAD writes, consumes and commits nothing', async () => {
  const { topic, group } = await fresh({ records: 1 });
  const authorization = `Basic ${Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64')}`;
  for (const path of [
    `/produce/${topic}/v1`,
    `/consume/${group}/i/${topic}?timeout=3000`,
    `/commit/${group}/i`,
  ]) {
    const head = await fetch(`${url()}/broker${path}`, {
      method: 'HEAD',
      headers: { authorization, ...EARLIEST },
    });
    expect([path, head.status]).toEqual([path, 405]);
  }
  expect(values(await consume(group, 'i', topic, EARLIEST))).toEqual(['v0']);
});

test('positions are committed in the background', async () => {
  const { topic, group } = await fresh({ records: 5 });
  await consume(group, 'i', topic, { ...EARLIEST, 'Kafka-Auto-Commit-Interval': '200' });
  await eventually(async () => expect(await kafka.committed(group, topic)).toEqual([5]));
});

test('delete commits, leaves the group at once and wakes a waiting call; the next call goes on behind', async () => {
  const { topic, group } = await fresh({ records: 5 });
  await consume(group, 'i', topic, EARLIEST);
  const waiting = consume(group, 'i', topic, {}, 20_000);
  expect(await remove(group, 'i')).toMatchObject({ status: 200, body: { result: 'Success', status: 200 } });
  const woken = await waiting;
  expect(woken).toMatchObject({ status: 200, body: [] });
  expect(woken.ms).toBeLessThan(PROMPT_MS);
  expect(await kafka.committed(group, topic)).toEqual([5]);
  expect(await kafka.members(group)).toBe(0);
  await produce(topic, 1, 1, 5);
  expect(values(await consume(group, 'i', topic, EARLIEST))).toEqual(['v5']);
  expect(await remove(group, 'i')).toMatchObject({ status: 200 });
  const gone = await remove(group, 'i');
  expect(gone).toMatchObject({ status: 404, body: { status: 404 } });
  expect(gone.body.error).toContain(group);
});

test('an idle instance commits, leaves and is closed; one in use is not', async () => {
  const { topic, group } = await fresh({ records: 5 });
  await consume(group, 'i', topic, EARLIEST);
  // longer than the idle time of 6 s, in one call
  expect((await consume(group, 'i', topic, {}, 7_000)).status).toBe(200);
  const { body } = await call<Groups>('/consumers');
  expect(body.find(({ name }) => name === group)?.instances).toEqual([
    { name: 'i', topics: [{ topic, partitions: [0] }] },
  ]);
  await eventually(async () => expect(await kafka.members(group)).toBe(0));
  expect(await kafka.committed(group, topic)).toEqual([5]);
  expect((await call<Groups>('/consumers')).body.find(({ name }) => name === group)).toBeUndefined();
});

test('two instances of a group share the partitions, each by its subscription', async () => {
  const { topic, group } = await fresh({ records: 0, partitions: 4 });
  const { topic: other } = await fresh({ partitions: 2 });
  await Promise.all([
    consume(group, 'a', topic, EARLIEST, 1_000),
    consume(group, 'b', topic, EARLIEST, 1_000),
    consume(group, 'c', other, EARLIEST, 1_000),
  ]);
  await eventually(async () => {
    await Promise.all(['a', 'b'].map((instance) => consume(group, instance, topic, {}, 100)));
    await consume(group, 'c', other, {}, 100);
    const found = (await call<Groups>('/consumers')).body.find(({ name }) => name === group);
    const byName = Object.fromEntries((found?.instances ?? []).map(({ name, topics }) => [name, topics]));
    expect(byName.c).toEqual([{ topic: other, partitions: [0, 1] }]);
    const shared = ['a', 'b'].map((name) => byName[name]?.[0]?.partitions ?? []);
    expect(shared.map((partitions) => partitions.length)).toEqual([2, 2]);
    expect(shared.flat().sort()).toEqual([0, 1, 2, 3]);
  });
  await produce(topic, 40, 4);
  await produce(other, 2, 2, 1_000);
  const got: string[] = [];
  await eventually(async () => {
    for (const [instance, from] of [
      ['a', topic],
      ['b', topic],
      ['c', other],
    ] as const)
      got.push(...values(await consume(group, instance, from, {}, 200)));
    expect(new Set(got).size).toBe(42);
  });
});

test('several topics, and others later: they replace the first', async () => {
  const { topic: a, group } = await fresh({ records: 2 });
  const { topic: b } = await fresh({ records: 2 });
  const body = (topics: string[]) => ({ topics, timeout: 30_000 });
  const got: BrokerRecord[] = [];
  await eventually(async () => {
    got.push(...(await call(`/consume/${group}/i`, body([a, b]), { headers: EARLIEST })).body);
    expect(got.map(({ topic }) => topic).sort()).toEqual([a, a, b, b].sort());
  });
  await produce(a, 1, 1, 2);
  await produce(b, 1, 1, 2);
  const replaced = await call(`/consume/${group}/i`, { topic: b, timeout: 30_000 });
  expect(replaced.body.map(({ topic, value }) => [topic, value])).toEqual([[b, 'v2']]);
});

test('none refuses a group without offsets, and takes one with them', async () => {
  const { topic, group } = await fresh({ records: 3 });
  const none = { 'Kafka-Auto-Offset-Reset': 'none' };
  const refused = await call<Failure>(`/consume/${group}/i/${topic}`, undefined, { headers: none });
  expect(refused).toMatchObject({ status: 400, body: { status: 400 } });
  expect(refused.body.error).toMatch(/no committed offset/);
  expect((await call<Groups>('/consumers')).body.find(({ name }) => name === group)).toBeUndefined();
  await consume(group, 'i', topic, EARLIEST);
  await remove(group, 'i');
  await produce(topic, 1, 1, 3);
  expect(values(await consume(group, 'i', topic, none))).toEqual(['v3']);
});

describe('commit', () => {
  const commit = (group: string, body?: unknown) =>
    call<Failure>(`/commit/${group}/i`, body, { method: 'POST' });

  test('nothing is committed before, then what was delivered, then literally what is asked', async () => {
    const { topic, group } = await fresh({ records: 5 });
    await consume(group, 'i', topic, BY_HAND);
    expect(await kafka.committed(group, topic)).toEqual([-1]);
    expect(await commit(group)).toMatchObject({ status: 200, body: { result: 'Success', status: 200 } });
    expect(await kafka.committed(group, topic)).toEqual([5]);
    await commit(group, { topic, partition: 0, offset: 2 });
    expect(await kafka.committed(group, topic)).toEqual([2]);
    expect(await commit(group, [])).toMatchObject({ status: 200 });
    expect(await kafka.committed(group, topic)).toEqual([2]);
    await remove(group, 'i');
    expect(values(await consume(group, 'i', topic, BY_HAND))).toEqual(['v2', 'v3', 'v4']);
  });

  test('may come while the instance still joins', async () => {
    const { topic, group } = await fresh({ records: 5 });
    const first = consume(group, 'i', topic, BY_HAND);
    await eventually(async () => expect((await commit(group, [])).status).toBe(200));
    await first;
  });

  test('refuses what does not fit', async () => {
    const { topic, group } = await fresh({ records: 1 });
    expect(await commit(group)).toMatchObject({ status: 404 });
    await consume(group, 'i', topic, BY_HAND);
    expect(await commit(group, { topic, partition: 7, offset: 1 })).toMatchObject({ status: 409 });
    expect(await commit(group, { topic, partition: 0, offset: -1 })).toMatchObject({ status: 400 });
    expect(await commit(group, { topic, partition: 0 })).toMatchObject({ status: 400 });
  });
});

test.each([
  ['an unknown topic', 'i', 'test-no-such-topic', {}, 404],
  ['no topic', 'i', undefined, {}, 400],
  ['a bad interval', 'i', 'x', { 'Kafka-Auto-Commit-Interval': 'soon' }, 400],
  ['a bad offset reset', 'i', 'x', { 'Broker-Auto-Offset-Reset': 'first' }, 400],
  ['a session timeout that the broker refuses', 'i', 'x', { 'Kafka-Session-Timeout-Ms': '1000' }, 400],
  ['a name that is too long', 'i'.repeat(300), 'x', {}, 400],
])('consume refuses %s', async (_name, instance, topic, headers, status) => {
  const reply = await call<Failure>(`/consume/${kafka.name('bad')}/${instance}`, { topic }, { headers });
  expect(reply).toMatchObject({ status, body: { status } });
});

test('names with slashes and other letters', async () => {
  const { topic, group } = await fresh({ records: 1 });
  const strange = encodeURIComponent(`${group}/größe 1`);
  expect(values(await consume(strange, encodeURIComponent('ins/tanz ü'), topic, EARLIEST))).toEqual(['v0']);
});

/** Sends a request, waits for the first bytes of the reply and cuts the connection with the rest unread. */
function requestAndVanish(path: string): Promise<void> {
  const { hostname, port } = new URL(url());
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    const credentials = Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64');
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: x\r\nKafka-Auto-Offset-Reset: earliest\r\nAuthorization: Basic ${credentials}\r\n\r\n`,
    );
    socket.once('readable', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}
