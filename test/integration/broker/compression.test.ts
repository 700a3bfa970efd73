import { brokerUnderTest } from '../../support/broker/broker.js';
import { brokerClient, type KafkaNamespace, kafkaNamespace } from '../../support/broker/kafka.js';
import { startGateway } from '../../support/gateway.js';

const { kafka, call } = brokerUnderTest();
const HAS_ZSTD = 'zstdCompress' in (process.getBuiltinModule('node:zlib') as object);

/** Compressible and not, short and longer than the codecs' windows. */
const VALUES = [
  '',
  'a',
  'abc'.repeat(10),
  'x'.repeat(100_000),
  Array.from({ length: 20_000 }, (_, i) => (i * 7919).toString(36)).join(' '),
  ...Array.from({ length: 50 }, (_, i) => `{"id":${i},"name":"somebody ${i % 7}"}`),
];

// with `compression.type` on a topic the broker packs what it is given with its own libraries
test.each(['gzip', 'snappy', 'lz4', ...(HAS_ZSTD ? ['zstd'] : [])])(
  'records that others compressed with %s are fetched and consumed',
  async (codec) => {
    const topic = await kafka.topic(`read-${codec}`, 1, { 'compression.type': codec });
    await call(
      `/produce/${topic}`,
      VALUES.map((value, i) => ({ value, key: `k${i}`, headers: [{ key: 'n', value: String(i) }] })),
    );
    const fetched = await call('/fetch', { topic, partition: 0, offset: 2 });
    expect(fetched.body.map(({ value }) => value)).toEqual(VALUES.slice(2));
    expect(fetched.body[0]).toMatchObject({ offset: 2, key: 'k2', headers: [{ key: 'n', value: '2' }] });
    const headers = { 'Kafka-Auto-Offset-Reset': 'earliest' };
    const consumed = await call(`/consume/${kafka.name(codec)}/i/${topic}?timeout=30000`, undefined, {
      headers,
    });
    expect(consumed.body.map(({ value }) => value)).toEqual(VALUES);
  },
);

if (!HAS_ZSTD)
  test('zstd on a Node without it: 502 that says so, and other topics go on', async () => {
    const topic = await kafka.topic('read-zstd', 1, { 'compression.type': 'zstd' });
    const other = await kafka.topic('read-other');
    await call(
      '/produce',
      [topic, other].map((name) => ({ topic: name, value: 'x' })),
    );
    const refused = await call<{ error: string }>('/fetch', { topic, partition: 0, offset: 0 });
    expect(refused).toMatchObject({ status: 502, body: { error: expect.stringMatching(/Node 22.15/) } });
    const headers = { 'Kafka-Auto-Offset-Reset': 'earliest' };
    const consume = (names: string[]) =>
      call<{ error: string }>(
        `/consume/${kafka.name('z')}/i`,
        { topics: names, timeout: 30_000 },
        { headers },
      );
    expect((await consume([topic])).status).toBe(502);
    expect(await consume([other])).toMatchObject({ status: 200, body: [{ value: 'x' }] });
  });

test.each(['gzip', ...(HAS_ZSTD ? ['zstd'] : [])])(
  'what is produced is compressed with %s',
  async (compression) => {
    const own: KafkaNamespace = await kafkaNamespace();
    const gateway = await startGateway({ broker: { clusters: [{ compression }] } });
    try {
      const topic = await own.topic('packed', 1, { 'max.message.bytes': '20000' });
      const value = 'compressible '.repeat(5_000);
      const packed = await brokerClient(gateway.url)(`/produce/${topic}`, { value });
      expect(packed.status).toBe(200);
      expect((await call(`/produce/${topic}`, { value })).status).toBe(413);
      expect((await call('/fetch', { topic, partition: 0, offset: 0 })).body[0]?.value).toBe(value);
    } finally {
      await gateway.stop();
      await own.dispose();
    }
  },
);

test('a batch that is crafted to fill the memory is 502 that names it, the others go on', async () => {
  const topic = await kafka.topic('crafted', 2);
  const writer = await startGateway({
    broker: { clusters: [{ compression: 'gzip', bodyLimit: 64 * 1024 * 1024 }] },
  });
  try {
    const produce = brokerClient(writer.url);
    const crafted = { value: 'x'.repeat(40 * 1024 * 1024), partition: 0 };
    const answers = [
      await produce(`/produce/${topic}`, { value: 'before', partition: 0 }),
      await produce(`/produce/${topic}`, crafted),
      await produce(`/produce/${topic}`, { value: 'elsewhere', partition: 1 }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  } finally {
    await writer.stop();
  }
  const fetch = (offset: number) => call<{ error: string }>('/fetch', { topic, partition: 0, offset });
  expect(await fetch(0)).toMatchObject({ status: 200, body: [{ value: 'before' }] });
  const refused = await fetch(1);
  expect(refused.status).toBe(502);
  expect(refused.body.error).toMatch(/unpacked .*offsets 1 to 1; broker\.clusters\[\]\.unpackedBytes/);
  const headers = { 'Kafka-Auto-Offset-Reset': 'earliest' };
  const seen: string[] = [];
  for (let i = 0; i < 2; i++) {
    const { body } = await call(`/consume/${kafka.name('crafted')}/i/${topic}?timeout=30000`, undefined, {
      headers,
    });
    seen.push(...body.map(({ value }) => value));
    if (seen.length === 2) break;
  }
  expect(seen.sort()).toEqual(['before', 'elsewhere']);
  const larger = await startGateway({
    broker: { clusters: [{ unpackedBytes: 64 * 1024 * 1024, timeoutMs: 60_000 }] },
  });
  try {
    const { status, body } = await brokerClient(larger.url)('/fetch', { topic, partition: 0, offset: 1 });
    expect([status, body[0]?.value.length]).toEqual([200, 40 * 1024 * 1024]);
  } finally {
    await larger.stop();
  }
});
