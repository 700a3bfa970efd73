import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';

const { call, kafka } = brokerUnderTest();
const BASE64 = { headers: { 'Broker-Encoding': 'base64' } };
const BYTES = Buffer.from([0, 255, 254, 0x80, 10]);
const base64 = (bytes: Buffer | string) => Buffer.from(bytes).toString('base64');

interface Read {
  readonly offset: number;
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: { readonly key: string; readonly value: string | null }[];
}

const records = <T = Read>(reply: { body: unknown }) => reply.body as unknown as T[];

describe('Broker-Encoding: base64', () => {
  it('takes bytes that are no text, and gives them back by fetch and by consume', async () => {
    const topic = await kafka.topic('bytes');
    const record = {
      key: base64(BYTES),
      value: base64(BYTES),
      headers: [{ key: 'héader', value: base64(BYTES) }],
    };
    expect((await call(`/produce/${topic}`, record, BASE64)).status).toBe(200);
    expect(await kafka.rawValues(topic)).toEqual([BYTES]);
    const fetched = await call('/fetch', { topic, partition: 0, offset: 0 }, BASE64);
    expect(fetched.body).toMatchObject([{ ...record, offset: 0 }]);
    const path = `/consume/${kafka.name('bytes')}/i/${topic}?timeout=30000`;
    const consumed = await call(path, undefined, {
      headers: { ...BASE64.headers, 'Kafka-Auto-Offset-Reset': 'earliest' },
    });
    expect(consumed.body).toMatchObject([{ ...record, offset: 0 }]);
    // as text they are what they can be
    const asText = await call('/fetch', { topic, partition: 0, offset: 0 });
    expect(asText.body).toMatchObject([{ value: BYTES.toString('utf8') }]);
  });

  it('tells what is not there from what is empty, tombstones among it', async () => {
    const topic = await kafka.topic('tombstones');
    await call(`/produce/${topic}`, [
      { key: 'k', value: 'here' },
      { key: 'k', value: null },
      { key: '', value: '' },
      { value: 'no key' },
    ]);
    expect(await kafka.rawValues(topic)).toEqual([
      Buffer.from('here'),
      null,
      Buffer.alloc(0),
      Buffer.from('no key'),
    ]);
    const position = { topic, partition: 0, offset: 0 };
    const pairs = (read: Read[]) => read.map(({ key, value }) => [key, value]);
    expect(pairs(records(await call('/fetch', position, BASE64)))).toEqual([
      [base64('k'), base64('here')],
      [base64('k'), null],
      ['', ''],
      [null, base64('no key')],
    ]);
    expect(pairs(records(await call('/fetch', position)))).toEqual([
      ['k', 'here'],
      ['k', ''],
      ['', ''],
      ['', 'no key'],
    ]);
  });

  it('carries large records whole', async () => {
    const topic = await kafka.topic('large-bytes', 1, { 'max.message.bytes': '8000000' });
    const value = Buffer.alloc(700_001, Buffer.from([1, 2, 250, 251, 252]));
    const written = await call(`/produce/${topic}`, { value: base64(value) }, BASE64);
    expect(written.status).toBe(200);
    const [read] = records(await call('/fetch', { topic, partition: 0, offset: 0 }, BASE64));
    expect(Buffer.from(read?.value as string, 'base64').equals(value)).toBe(true);
  });

  it('refuses what is none by name, and writes nothing', async () => {
    const topic = await kafka.topic('no-base64');
    for (const [record, what] of [
      [{ value: 'a b=' }, 'value'],
      [{ value: 'abc' }, 'value'],
      [{ value: 'AAAA', key: '****' }, 'key'],
      [{ value: 'AAAA', headers: [{ key: 'h', value: '=' }] }, 'a header'],
    ] as const) {
      const reply = await call<Failure>(`/produce/${topic}`, [{ value: 'AAAA' }, record], BASE64);
      expect([reply.status, reply.body.error]).toEqual([
        400,
        `Record 1: ${what} is not base64 (Broker-Encoding).`,
      ]);
    }
    const wrong = await call('/fetch', { topic, partition: 0 }, { headers: { 'Broker-Encoding': 'hex' } });
    expect(wrong.status).toBe(400);
    expect(records(await call('/fetch', { topic, partition: 0, timeout: 0 }))).toEqual([]);
  });
});

describe('limit and max_bytes', () => {
  it('bound a reply; what is left comes with the next', async () => {
    const topic = await kafka.topic('limits');
    const values = Array.from({ length: 10 }, (_, i) => ({ value: `${i}`.repeat(1_000) }));
    await call(`/produce/${topic}`, values);
    const position = { topic, partition: 0, offset: 0 };
    expect(records(await call('/fetch', { ...position, limit: 3 }))).toHaveLength(3);
    expect(records(await call('/fetch', { ...position, max_bytes: 2_500 }))).toHaveLength(2);
    // the first record comes whatever its size
    expect(records(await call('/fetch', { ...position, max_bytes: 1 }))).toHaveLength(1);
    const path = `/consume/${kafka.name('limits')}/i`;
    const headers = { 'Kafka-Auto-Offset-Reset': 'earliest' };
    const first = await call(`${path}/${topic}?timeout=30000&limit=4`, undefined, { headers });
    expect(records(first).map(({ offset }) => offset)).toEqual([0, 1, 2, 3]);
    const second = await call(path, { topic, timeout: 30_000, max_bytes: 2_500 });
    expect(records(second).map(({ offset }) => offset)).toEqual([4, 5]);
    const rest = await call(path, { topic, timeout: 30_000 });
    expect(records(rest).map(({ offset }) => offset)).toEqual([6, 7, 8, 9]);
  });

  it.each([
    ['/fetch', { limit: 0 }],
    ['/fetch', { max_bytes: -1 }],
    ['/fetch', { limit: 'many' }],
  ])('refuses what is no count: %s %j', async (path, change) => {
    const reply = await call(path, { topic: 'any', partition: 0, ...change });
    expect(reply.status).toBe(400);
    expect((await call(`/consume/g/i/any?limit=0`)).status).toBe(400);
  });
});
