import { request } from 'node:http';
import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { TOKENS } from '../../support/tokens.js';

type Written = { topic: string; partition: number; offset: number; timestamp: number };

const { kafka, call, url } = brokerUnderTest();

const read = (topic: string, partition = 0, offset = 0) =>
  call('/fetch', { topic, partition, offset, timeout: 100 });

describe('produce', () => {
  test('an object, an array and a text in the path, and what is read back', async () => {
    const topic = await kafka.topic('forms');
    const before = Date.now();
    const one = await call<Written[]>(`/produce/${topic}/`, { value: 'größer', key: 'k', partition: 0 });
    expect(one.status).toBe(200);
    expect(one.body).toEqual([{ topic, partition: 0, offset: 0, timestamp: expect.any(Number) }]);
    expect(one.body[0]?.timestamp).toBeGreaterThanOrEqual(before);
    const many = await call<Written[]>(`/produce/${topic}`, [
      { value: '', timestamp: 1_700_000_000_000 },
      {
        value: 'c',
        timestamp: 5,
        headers: [
          { key: 'h', value: '1' },
          { key: 'h', value: '2' },
          { key: '__proto__', value: 'p' },
          { key: 'constructor', value: 'c' },
        ],
      },
      { value: 'd', timestamp: 0, key: '' },
    ]);
    expect(many.body.map(({ offset, timestamp }) => [offset, timestamp])).toEqual([
      [1, 1_700_000_000_000],
      [2, 5],
      [3, 0],
    ]);
    const path = await call<Written>(`/produce/${topic}/a%2Fb%20c?key=q`);
    expect(path.body).toMatchObject({ topic, partition: 0, offset: 4 });
    const { body } = await read(topic);
    expect(body.map(({ offset, key, value }) => [offset, key, value])).toEqual([
      [0, 'k', 'größer'],
      [1, '', ''],
      [2, '', 'c'],
      [3, '', 'd'],
      [4, 'q', 'a/b c'],
    ]);
    expect(body.map(({ timestamp }) => timestamp)).toEqual([
      one.body[0]?.timestamp,
      1_700_000_000_000,
      5,
      0,
      path.body.timestamp,
    ]);
    expect(body[2]?.headers).toEqual([
      { key: 'h', value: '1' },
      { key: 'h', value: '2' },
      { key: '__proto__', value: 'p' },
      { key: 'constructor', value: 'c' },
    ]);
  });

  test('a body on GET, whatever its content type', async () => {
    const topic = await kafka.topic('get');
    const answer = await new Promise<string>((resolve, reject) => {
      const body = JSON.stringify({ topic, value: 'x' });
      const outgoing = request(
        `${url()}/broker/produce`,
        {
          method: 'GET',
          auth: `${TOKENS.username}:${TOKENS.password}`,
          headers: {
            'content-type': 'application/x-www-form-urlencoded',
            'content-length': Buffer.byteLength(body),
          },
        },
        (incoming) => {
          let text = '';
          incoming.on('data', (chunk) => {
            text += chunk;
          });
          incoming.on('end', () => resolve(text));
        },
      );
      outgoing.on('error', reject);
      outgoing.end(body);
    });
    expect(JSON.parse(answer)).toMatchObject([{ topic, partition: 0, offset: 0 }]);
  });

  test('several topics and partitions in one request answer in its order; one key always goes to one partition', async () => {
    const a = await kafka.topic('order-a', 3);
    const b = await kafka.topic('order-b', 2);
    const inputs = Array.from({ length: 40 }, (_, i) => ({
      topic: i % 3 === 0 ? b : a,
      value: `v${i}`,
      ...(i % 4 === 0 ? { key: `key ${i % 8}` } : {}),
      ...(i % 5 === 0 ? { partition: 1 } : {}),
    }));
    const { body } = await call<Written[]>('/produce', inputs);
    expect(body.map(({ topic }) => topic)).toEqual(inputs.map(({ topic }) => topic));
    for (const [i, { topic, partition, offset }] of body.entries()) {
      const found = await read(topic, partition, offset);
      expect(found.body[0]).toMatchObject({
        topic,
        partition,
        offset,
        value: `v${i}`,
        key: inputs[i]?.key ?? '',
      });
    }
    const keyed = body.filter(
      (_, i) => inputs[i]?.topic === a && inputs[i]?.key === 'key 4' && !inputs[i]?.partition,
    );
    expect(new Set(keyed.map(({ partition }) => partition)).size).toBe(1);
  });

  test('a topic that keeps the time of the broker answers with that time', async () => {
    const topic = await kafka.topic('append-time', 1, { 'message.timestamp.type': 'LogAppendTime' });
    const { body } = await call<Written[]>(`/produce/${topic}`, { value: 'x', timestamp: 1_000 });
    expect(Math.abs((body[0]?.timestamp ?? 0) - Date.now())).toBeLessThan(60_000);
    expect((await read(topic)).body[0]?.timestamp).toBe(body[0]?.timestamp);
  });

  test.each([
    ['no value', {}, /body.0.value/],
    ['a number', { value: 1 }, /value/],
    ['null', 'null', /body/],
    ['headers as an object', { value: 'x', headers: { a: 'b' } }, /headers/],
    ['a negative partition', { value: 'x', partition: -1 }, /partition/],
    ['a partition as text', { value: 'x', partition: '0' }, /partition/],
    ['a negative time', { value: 'x', timestamp: -1 }, /timestamp/],
    ['a misspelt key', { value: 'x', partiton: 0 }, /partiton/],
    ['an empty list', [], /body/],
    ['half a value', '{"value":"x"', /JSON/],
  ])('refuses %s with 400', async (_name, body, message) => {
    const topic = await kafka.topic(`bad-${Math.random()}`);
    const { status, body: failure } = await call<Failure>(`/produce/${topic}`, body);
    expect({ status, failure }).toMatchObject({ status: 400, failure: { status: 400 } });
    expect(failure.error).toMatch(message);
    expect((await read(topic)).body).toEqual([]);
  });

  test('an unknown topic or partition is refused at once, and nothing of that request is written', async () => {
    const topic = await kafka.topic('known', 2);
    const none = await call<Failure>('/produce', [
      { topic, value: 'x' },
      { topic: kafka.name('none'), value: 'y' },
    ]);
    expect(none).toMatchObject({ status: 404, body: { status: 404 } });
    expect(none.body.error).toContain(kafka.name('none'));
    expect(none.ms).toBeLessThan(PROMPT_MS);
    const high = await call<Failure>('/produce', [
      { topic, value: 'x' },
      { topic, value: 'y', partition: 2 },
    ]);
    expect(high).toMatchObject({ status: 400, body: { status: 400 } });
    expect([...(await read(topic, 0)).body, ...(await read(topic, 1)).body]).toEqual([]);
  });

  test('each of many concurrent requests gets its own result, also when records of others are refused', async () => {
    const topic = await kafka.topic('shared', 1, { 'max.message.bytes': '20000' });
    const answers = await Promise.all(
      Array.from({ length: 120 }, (_, i) =>
        call<Written[]>(`/produce/${topic}`, { value: i % 10 === 7 ? 'x'.repeat(30_000) : `value ${i}` }),
      ),
    );
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 413));
    const { body } = await read(topic);
    expect(body).toHaveLength(108);
    for (const [i, { status, body: written }] of answers.entries()) {
      if (status !== 200) continue;
      expect(body[written[0]?.offset as number]?.value).toBe(`value ${i}`);
    }
  });

  test('a request larger than one batch is written whole and in order', async () => {
    const topic = await kafka.topic('large');
    const inputs = Array.from({ length: 30 }, (_, i) => ({ value: `${i}`.padEnd(100_000, '.') }));
    const { body } = await call<Written[]>(`/produce/${topic}`, inputs);
    expect(body.map(({ offset }) => offset)).toEqual(inputs.map((_, i) => i));
    const last = await read(topic, 0, 29);
    expect(last.body[0]?.value.slice(0, 3)).toBe('29.');
  });

  test('a topic deleted while in use is 404, and the others go on', async () => {
    const doomed = await kafka.topic('doomed');
    const other = await kafka.topic('other');
    expect((await call(`/produce/${doomed}`, { value: 'x' })).status).toBe(200);
    await kafka.deleteTopic(doomed);
    // Kafka says that it is deleted before all of its parts know
    await eventually(async () => {
      const gone = await call<Failure>(`/produce/${doomed}`, { value: 'x' });
      expect(gone).toMatchObject({ status: 404, body: { status: 404 } });
    });
    expect((await call(`/produce/${other}`, { value: 'x' })).status).toBe(200);
    expect((await read(doomed)).status).toBe(404);
  });
});

describe('fetch', () => {
  test('a set, a single one and both, in that order', async () => {
    const topic = await kafka.topic('set', 3);
    await call(
      '/produce',
      [0, 1, 2].map((partition) => ({ topic, partition, value: `p${partition}` })),
    );
    const set = [
      { topic, partition: 2, offset: 0 },
      { topic, partition: 0 },
    ];
    const onlySet = await call('/fetch', { topicPartitionOffsets: set });
    expect(onlySet.body.map(({ value }) => value)).toEqual(['p2', 'p0']);
    const both = await call('/fetch/', { topic, partition: 1, offset: 0, topicPartitionOffsets: set });
    expect(both.body.map(({ value }) => value)).toEqual(['p2', 'p0', 'p1']);
  });

  test('the same partition at two offsets', async () => {
    const topic = await kafka.topic('twice');
    await call(`/produce/${topic}`, [{ value: 'a' }, { value: 'b' }]);
    const set = [0, 1].map((offset) => ({ topic, partition: 0, offset }));
    const { body } = await call('/fetch', { topicPartitionOffsets: set });
    expect(body.map(({ value }) => value)).toEqual(['a', 'b', 'b']);
  });

  test('waits for its timeout at the end of a log, and not when a record comes', async () => {
    const topic = await kafka.topic('wait', 2);
    const wait = (timeout: number) =>
      call('/fetch', {
        topic,
        partition: 1,
        offset: 0,
        topicPartitionOffsets: [{ topic, partition: 0 }],
        timeout,
      });
    const empty = await wait(300);
    expect(empty.body).toEqual([]);
    expect(empty.ms).toBeGreaterThan(290);
    expect(empty.ms).toBeLessThan(PROMPT_MS);
    const waiting = wait(30_000);
    await call(`/produce/${topic}`, { value: 'late', partition: 1 });
    const answer = await waiting;
    expect(answer.body.map(({ value }) => value)).toEqual(['late']);
    expect(answer.ms).toBeLessThan(PROMPT_MS);
  });

  test('a hundred waits do not stand in line behind each other', async () => {
    const topic = await kafka.topic('crowd', 4);
    const started = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        call('/fetch', { topic, partition: i % 4, offset: 0, timeout: 500 }),
      ),
    );
    expect(answers.map(({ body }) => body)).toEqual(answers.map(() => []));
    // one after the other they would take 50 s
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  test('what cannot be read is told, with what can be read', async () => {
    const topic = await kafka.topic('partly', 2);
    await call(`/produce/${topic}`, { value: 'x', partition: 0 });
    const bad = { topic, partition: 1, offset: 77 };
    const alone = await call<Failure>('/fetch', bad);
    expect(alone).toMatchObject({ status: 400, body: { status: 400 } });
    expect(alone.body.error).toMatch(/offset 77/);
    const mixed = await call('/fetch', { topicPartitionOffsets: [bad, { topic, partition: 0, offset: 0 }] });
    expect(mixed).toMatchObject({ status: 200, body: [{ value: 'x' }] });
    expect(JSON.parse(mixed.headers.get('broker-partition-errors') ?? '')).toMatchObject([
      { ...bad, status: 400 },
    ]);
  });

  test.each([
    ['nothing', {}, 400],
    ['a topic without partition', { topic: 'x' }, 400],
    ['a negative offset', { topic: 'x', partition: 0, offset: -1 }, 400],
    ['an offset as text', { topic: 'x', partition: 0, offset: '0' }, 400],
    ['a name that cannot be', { topic: 'a/b', partition: 0 }, 400],
    ['an unknown topic', { topic: 'test-no-such-topic', partition: 0 }, 404],
  ])('refuses %s', async (_name, body, status) => {
    expect(await call<Failure>('/fetch', body)).toMatchObject({ status, body: { status } });
  });
});

test('topics with their numbers of partitions, without the internal ones', async () => {
  const topic = await kafka.topic('counted', 5);
  const { body } = await call<Record<string, number>>('/topics');
  expect(body[topic]).toBe(5);
  expect(Object.keys(body).filter((name) => name.startsWith('__'))).toEqual([]);
});
