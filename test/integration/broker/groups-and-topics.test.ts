import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';
import { brokerClient } from '../../support/broker/kafka.js';
import { eventually } from '../../support/eventually.js';
import { TOKENS } from '../../support/tokens.js';

const ADMIN = { username: TOKENS.username, password: TOKENS.password, topicAdmin: true };
const PLAIN = {
  username: 'plain',
  password: 'password-of-the-plain-user',
  topicPattern: 'test-*,other.topic',
};
const { call, kafka, url } = brokerUnderTest({ users: [ADMIN, PLAIN] });
const plain: typeof call = (...request) => brokerClient(url(), PLAIN)(...request);
const EARLIEST = { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Enable-Auto-Commit': 'false' };

async function produced(short: string, partitions: number, count: number): Promise<string> {
  const topic = await kafka.topic(short, partitions);
  await call(
    `/produce/${topic}`,
    Array.from({ length: count }, (_, i) => ({
      value: `${i}`,
      partition: i % partitions,
      timestamp: 1_000 + i,
    })),
  );
  return topic;
}

describe('the lag of a group', () => {
  it('is told by partition, whether or not an instance lives', async () => {
    const topic = await produced('lag', 2, 10);
    const group = kafka.name('lag');
    expect((await call(`/lag/${group}`)).body).toEqual([]);
    const path = `${group}/i`;
    await eventually(async () => {
      await call(`/consume/${path}/${topic}?timeout=5000`, undefined, { headers: EARLIEST });
      const { status } = await call(`/commit/${path}`, [
        { topic, partition: 0, offset: 3 },
        { topic, partition: 1, offset: 5 },
      ]);
      expect(status).toBe(200);
    });
    const expected = [
      { topic, partition: 0, offset: 3, end: 5, lag: 2 },
      { topic, partition: 1, offset: 5, end: 5, lag: 0 },
    ];
    expect((await call(`/lag/${group}`)).body).toEqual(expected);
    await call(`/delete-consumer/${path}`, undefined, { method: 'POST' });
    expect((await call(`/lag/${group}?topic=${topic}`)).body).toEqual(expected);
    expect((await call(`/lag/${group}?topic=${kafka.name('none')}`)).body).toEqual([]);
    // groups of another user are called otherwise in Kafka
    expect((await plain(`/lag/${group}`)).body).toEqual([]);
  });
});

describe('a group without instances', () => {
  it('goes on where it is told to: an offset, an end, or a time', async () => {
    const topic = await produced('seek', 2, 20);
    const group = kafka.name('seek');
    const seek = async (body: unknown) => (await call(`/seek/${group}`, body)).body as unknown;
    expect(await seek({ topic, partition: 0, offset: 4 })).toEqual([{ topic, partition: 0, offset: 4 }]);
    expect(await kafka.committed(group, topic)).toEqual([4, -1]);
    expect(await seek({ topic, offset: 'latest' })).toEqual([
      { topic, partition: 0, offset: 10 },
      { topic, partition: 1, offset: 10 },
    ]);
    expect(
      await seek([
        { topic, timestamp: 1_010 },
        { topic, partition: 1, offset: 'earliest' },
      ]),
    ).toEqual([
      { topic, partition: 0, offset: 5 },
      { topic, partition: 1, offset: 0 },
    ]);
    expect(await kafka.committed(group, topic)).toEqual([5, 0]);
    const read = await call(`/consume/${group}/i/${topic}?timeout=30000`, undefined, {
      headers: { 'Kafka-Auto-Offset-Reset': 'none' },
    });
    expect(read.status).toBe(200);
    expect((read.body as unknown as { offset: number }[])[0]?.offset).toEqual(expect.any(Number));
  });

  it('only: while it has some it is refused, and nothing changes', async () => {
    const topic = await produced('seek-live', 1, 3);
    const group = kafka.name('seek-live');
    await eventually(async () => {
      const { body } = await call(`/consume/${group}/i/${topic}?timeout=5000`, undefined, {
        headers: EARLIEST,
      });
      expect(body).toHaveLength(3);
    });
    const refused = await call<Failure>(`/seek/${group}`, { topic, offset: 'latest' });
    expect(refused).toMatchObject({ status: 409, body: { error: expect.stringContaining('has instances') } });
    expect(await kafka.committed(group, topic)).toEqual([-1]);
  });

  it('is not sent outside of the log, and nothing of a wrong request is committed', async () => {
    const topic = await produced('seek-wrong', 1, 3);
    const group = kafka.name('seek-wrong');
    for (const [body, status] of [
      [
        [
          { topic, partition: 0, offset: 1 },
          { topic, partition: 0, offset: 99 },
        ],
        400,
      ],
      [{ topic, partition: 7, offset: 0 }, 400],
      [{ topic, offset: 1 }, 400],
      [{ topic, partition: 0 }, 400],
      [{ topic, partition: 0, offset: 0, timestamp: 1 }, 400],
      [{ topic: kafka.name('nowhere'), offset: 'earliest' }, 404],
    ] as const)
      expect([body, (await call(`/seek/${group}`, body)).status]).toEqual([body, status]);
    expect(await kafka.committed(group, topic)).toEqual([-1]);
    expect((await plain(`/seek/${group}`, { topic: 'foreign', offset: 'latest' })).status).toBe(403);
  });
});

describe('topics', () => {
  const config = { 'cleanup.policy': 'compact', 'retention.ms': '60000' };

  it('are made, described, changed and deleted by a user who may', async () => {
    const topic = kafka.name('made');
    const path = `/topics/${topic}`;
    expect((await call(path, { partitions: 2, replicationFactor: 1, config })).body).toEqual({
      result: 'Success',
      status: 200,
    });
    expect((await call(`/produce/${topic}`, { value: 'at once', key: 'k', partition: 1 })).status).toBe(200);
    const described = (await call(path, undefined, { method: 'GET' })).body as unknown as {
      partitions: { partition: number }[];
      config: Record<string, string>;
    };
    expect(described).toMatchObject({ name: topic, config });
    expect(described.partitions.map(({ partition }) => partition)).toEqual([0, 1]);
    const again = await call<Failure>(path, {});
    expect(again).toMatchObject({ status: 409, body: { error: expect.stringContaining('there already') } });

    const change = { partitions: 3, config: { 'retention.ms': null, 'segment.ms': '70000' } };
    expect((await call(path, change, { method: 'PATCH' })).status).toBe(200);
    const changed = (await call(path, undefined, { method: 'GET' })).body as unknown as typeof described;
    expect(changed.partitions).toHaveLength(3);
    // what was not named stays
    expect(changed.config).toEqual({ 'cleanup.policy': 'compact', 'segment.ms': '70000' });
    // all or nothing, and what is so already is no change
    const later = { 'segment.ms': '80000' };
    for (const [change, status] of [
      [{ partitions: 1, config: later }, 400],
      [{ partitions: 4, config: { ...later, 'retention.ms': 'soon' } }, 400],
      [{ partitions: 3, config: changed.config }, 200],
      [{ partitions: 3, config: later }, 200],
    ] as const) {
      expect((await call(path, change, { method: 'PATCH' })).status).toBe(status);
      const now = (await call(path, undefined, { method: 'GET' })).body as unknown as typeof described;
      expect(now.partitions).toHaveLength(3);
      expect(now.config['segment.ms']).toBe(status === 200 ? change.config['segment.ms'] : '70000');
    }

    expect((await call(path, undefined, { method: 'DELETE' })).status).toBe(200);
    await eventually(async () => expect((await call(path, undefined, { method: 'GET' })).status).toBe(404));
    expect((await call(path, undefined, { method: 'DELETE' })).status).toBe(404);
  });

  it.each([
    ['too many replicas', { replicationFactor: 50 }],
    ['a setting that is none', { config: { 'no.such.setting': '1' } }],
    ['a value that is none', { config: { 'retention.ms': 'soon' } }],
    ['no partitions', { partitions: 0 }],
    ['a misspelt key', { partition: 3 }],
  ])('are not made with %s', async (_what, body) => {
    const topic = kafka.name('not-made');
    const reply = await call(`/topics/${topic}`, body);
    expect([reply.status, reply.body]).toEqual([400, { error: expect.any(String), status: 400 }]);
    expect((await call(`/topics/${topic}`, undefined, { method: 'GET' })).status).toBe(404);
  });

  it('are looked at by whoever may name them, and changed by nobody else', async () => {
    const topic = await kafka.topic('looked-at');
    expect((await plain(`/topics/${topic}`, undefined, { method: 'GET' })).status).toBe(200);
    for (const [method, body] of [
      ['POST', {}],
      ['PATCH', { partitions: 5 }],
      ['DELETE', undefined],
    ] as const) {
      const reply = await plain<Failure>(`/topics/${topic}`, body, { method });
      expect(reply).toMatchObject({ status: 403, body: { error: expect.stringContaining('topicAdmin') } });
    }
    expect((await plain('/topics/elsewhere', undefined, { method: 'GET' })).status).toBe(403);
    // several patterns: the second is a whole name
    expect((await plain('/topics/other.topic', undefined, { method: 'GET' })).status).toBe(404);
    expect((await plain('/topics/other.topics', undefined, { method: 'GET' })).status).toBe(403);
  });
});
