import { amount } from '../../support/amount.js';
import { type BrokerUnderTest, brokerUnderTest, type Failure } from '../../support/broker/broker.js';
import type { Answer, BrokerRecord } from '../../support/broker/kafka.js';
import { RawClient } from '../../support/raw-client.js';
import { TOKENS } from '../../support/tokens.js';

// clients that leave in the moment in which their reply comes: on the wire they look like clients that have read it
const REPLY_RECORDS = 3;
const asked = brokerUnderTest({ replyRecords: REPLY_RECORDS });
const configured = brokerUnderTest({ replyRecords: REPLY_RECORDS, redeliver: true });
const MANUAL = { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Enable-Auto-Commit': 'false' };
const AUTOMATIC = { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Auto-Commit-Interval': '10' };
const REDELIVER = { 'Broker-Redeliver': 'true' };
const AUTHORIZATION = `Basic ${Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64')}`;

interface Style {
  readonly of: BrokerUnderTest;
  /** Of every consume. */
  readonly headers: Record<string, string>;
  /** Header of the next consume after `reply`. */
  readonly echoes?: boolean;
  /** How `reply` is committed. */
  readonly commit?: (
    path: string,
    reply: Answer<BrokerRecord[]>,
  ) => Promise<{ status: number; body: unknown }>;
}

const idOf = ({ headers }: { headers: Headers }) => headers.get('broker-delivery') as string;
const literal = ({ body }: Answer<BrokerRecord[]>) => {
  const { topic, partition, offset } = body.at(-1) as BrokerRecord;
  return { topic, partition, offset: offset + 1 };
};

const STYLES: [string, Style][] = [
  ['automatic commits, the next consume names the delivery', { of: asked, headers: AUTOMATIC, echoes: true }],
  [
    'commits of what was delivered',
    { of: asked, headers: { ...MANUAL, ...REDELIVER }, commit: (path) => asked.call(path, []) },
  ],
  [
    'commits of what was delivered, which name the delivery',
    {
      of: asked,
      headers: { ...MANUAL, ...REDELIVER },
      commit: (path, reply) => asked.call(path, [], { headers: { 'Broker-Acknowledge': idOf(reply) } }),
    },
  ],
  [
    'commits of offsets',
    {
      of: asked,
      headers: { ...MANUAL, ...REDELIVER },
      commit: (path, reply) => asked.call(path, literal(reply)),
    },
  ],
  [
    'commits of what was delivered, by a client that knows no such header',
    { of: configured, headers: MANUAL, commit: (path) => configured.call(path, []) },
  ],
];
/** Of each style. */
const ABORTED = amount(50, 200);
/** Replies that are broken off before one is read, in turns. */
const IN_A_ROW = [1, 2, 0];

/** Sends a consume, and leaves as soon as records come. */
async function leaveWithReply(url: string, path: string, headers: Record<string, string>): Promise<void> {
  const client = await RawClient.open(Number(new URL(url).port));
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  client.write(
    `GET /broker${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${AUTHORIZATION}\r\n${lines.join('')}\r\n`,
  );
  await client.until(/"offset":/);
  client.end();
}

test.each(STYLES)('%s: no record is lost by replies that were broken off', async (name, style) => {
  const { call, kafka, url } = style.of;
  const short = `aborted-${STYLES.findIndex(([other]) => other === name)}`;
  const topic = await kafka.topic(short);
  const group = kafka.name(short);
  const count = Math.ceil(
    (ABORTED / (IN_A_ROW.reduce((a, b) => a + b, 0) / IN_A_ROW.length)) * REPLY_RECORDS,
  );
  await call(
    `/produce/${topic}`,
    Array.from({ length: count }, (_, i) => ({ value: `${i}` })),
  );
  const path = `/consume/${group}/i/${topic}?timeout=30000`;
  let aborted = 0;
  let next = 0;
  let id: string | undefined;
  for (let replies = 0; next < count; replies++) {
    const headers = {
      ...style.headers,
      ...(style.echoes === true ? REDELIVER : {}),
      ...(style.echoes === true && id !== undefined ? { 'Broker-Acknowledge': id } : {}),
    };
    for (let i = IN_A_ROW[replies % IN_A_ROW.length] as number; i > 0; i--) {
      await leaveWithReply(url(), path, headers);
      aborted += 1;
    }
    const reply = await call(path, undefined, { headers });
    expect(reply.body.map(({ offset }) => offset)).toEqual(
      Array.from({ length: Math.min(REPLY_RECORDS, count - next) }, (_, i) => next + i),
    );
    next += reply.body.length;
    id = idOf(reply);
    const committed = await style.commit?.(`/commit/${group}/i`, reply);
    if (committed === undefined) continue;
    expect(committed).toMatchObject({ status: 200, body: { result: 'Success' } });
    expect(await kafka.committed(group, topic)).toEqual([next]);
  }
  expect(aborted).toBeGreaterThanOrEqual(ABORTED);
  // nor by the end of the instance: of what was not confirmed nothing is committed
  await leaveAndClose(style, path, group, topic, id);
});

async function leaveAndClose(
  { of: { call, kafka, url }, headers, echoes }: Style,
  path: string,
  group: string,
  topic: string,
  id: string | undefined,
): Promise<void> {
  const { body } = await call<{ offset: number }[]>(`/produce/${topic}`, { value: 'last' });
  const wishes = echoes === true ? { ...headers, ...REDELIVER, 'Broker-Acknowledge': id as string } : headers;
  await leaveWithReply(url(), path, wishes);
  await call(`/delete-consumer/${group}/i`, undefined, { method: 'POST' });
  expect(await kafka.committed(group, topic)).toEqual([body[0]?.offset]);
  const again = await call(path, undefined, { headers });
  expect(again.body.map(({ value }) => value)).toEqual(['last']);
}

test('a commit within a reply lets the rest of it come again', async () => {
  const { call, kafka } = asked;
  const topic = await kafka.topic('partly');
  const path = `/consume/${kafka.name('partly')}/i/${topic}?timeout=30000`;
  await call(
    `/produce/${topic}`,
    ['0', '1', '2'].map((value) => ({ value })),
  );
  const headers = { ...MANUAL, ...REDELIVER };
  expect((await call(path, undefined, { headers })).body).toHaveLength(3);
  await call(`/commit/${kafka.name('partly')}/i`, { topic, partition: 0, offset: 1 });
  const { body } = await call(path, undefined, { headers });
  expect(body.map(({ value }) => value)).toEqual(['1', '2']);
});

test('a delivery that the instance does not know is not committed', async () => {
  const { call, kafka } = asked;
  const topic = await kafka.topic('unknown');
  const group = kafka.name('unknown');
  await call(`/produce/${topic}`, { value: 'x' });
  const headers = { ...MANUAL, ...REDELIVER };
  const reply = await call(`/consume/${group}/i/${topic}?timeout=30000`, undefined, { headers });
  const commit = (id: string) =>
    call<Failure>(`/commit/${group}/i`, [], { headers: { 'Broker-Acknowledge': id } });
  expect(await commit('another')).toMatchObject({ status: 409, body: { status: 409 } });
  expect(await kafka.committed(group, topic)).toEqual([-1]);
  // twice, as by a client that did not read the first answer
  expect((await commit(idOf(reply))).status).toBe(200);
  expect((await commit(idOf(reply))).status).toBe(200);
  expect(await kafka.committed(group, topic)).toEqual([1]);
});

test('without the wish a consume reads on, whatever became of the reply before', async () => {
  const { call, kafka } = asked;
  const topic = await kafka.topic('default');
  const path = `/consume/${kafka.name('default')}/i/${topic}?timeout=30000`;
  await call(
    `/produce/${topic}`,
    Array.from({ length: REPLY_RECORDS + 1 }, (_, i) => ({ value: `${i}` })),
  );
  expect((await call(path, undefined, { headers: MANUAL })).body).toHaveLength(REPLY_RECORDS);
  const { body } = await call(path, undefined, { headers: MANUAL });
  expect(body.map(({ offset }) => offset)).toEqual([REPLY_RECORDS]);
});

test('an offset that a client commits itself is not undone by the commit of what was delivered', async () => {
  const { call, kafka } = asked;
  const topic = await kafka.topic('chosen', 2);
  const group = kafka.name('chosen');
  await call(
    `/produce/${topic}`,
    [0, 1].map((partition) => ({ value: 'x', partition })),
  );
  const headers = { ...MANUAL, ...REDELIVER };
  const reply = () => call(`/consume/${group}/i/${topic}?timeout=30000`, undefined, { headers });
  while ((await reply()).body.length < 2);
  const commit = async (body: unknown) => {
    expect((await call(`/commit/${group}/i`, body)).status).toBe(200);
  };
  // one has read both, and goes back in the first and ahead in the second
  await commit({ topic, partition: 0, offset: 1 });
  await commit({ topic, partition: 0, offset: 0 });
  await commit({ topic, partition: 1, offset: 5 });
  await commit([]);
  expect(await kafka.committed(group, topic)).toEqual([0, 5]);
});
