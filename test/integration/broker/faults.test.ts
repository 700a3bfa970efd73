import { backend } from '../../support/backend.js';
import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';
import { type Answer, brokerClient } from '../../support/broker/kafka.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';

type Written = { partition: number; offset: number };

const EARLIEST = { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Auto-Commit-Interval': '200' };
const broken = backend('kafka');

afterAll(async () => {
  await broken.resume().catch(() => {});
  await broken.start();
});

// behind the hook above, which runs first
const { kafka, call } = brokerUnderTest({ timeoutMs: 4_000, idleTimeoutMs: 60_000 });

function expectUnavailable(answer: Answer<Failure>): void {
  expect(answer).toMatchObject({ status: 503, body: { status: 503 } });
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(answer.ms).toBeLessThan(PROMPT_MS);
}

test('down at the start: 503 within two seconds everywhere, and it recovers by itself', async () => {
  const topic = await kafka.topic('start');
  await broken.kill();
  const late = await startGateway({ broker: {} });
  const callLate = brokerClient(late.url);
  try {
    expectUnavailable(await callLate<Failure>('/topics'));
    expectUnavailable(await callLate<Failure>(`/produce/${topic}`, { value: 'x' }));
    expectUnavailable(await callLate<Failure>('/fetch', { topic, partition: 0 }));
    expectUnavailable(await callLate<Failure>(`/consume/${kafka.name('g')}/i/${topic}`));
    await broken.start();
    await eventually(async () =>
      expect((await callLate(`/produce/${topic}`, { value: 'x' })).status).toBe(200),
    );
    const consumed = await callLate(`/consume/${kafka.name('g')}/i/${topic}?timeout=30000`, undefined, {
      headers: EARLIEST,
    });
    expect(consumed.body.map(({ value }) => value)).toEqual(['x']);
  } finally {
    await late.stop();
  }
});

test('killed and back under load: what was acknowledged is there, and the consumer skips none of it', async () => {
  const topic = await kafka.topic('load', 3);
  const group = kafka.name('load');
  const acknowledged: string[] = [];
  const seen = new Set<string>();
  const statuses = new Set<number>();
  let stopped = false;
  let longest = 0;
  const producing = Array.from({ length: 4 }, async (_, producer) => {
    for (let i = 0; !stopped; i++) {
      const value = `${producer}:${i}`;
      const answer = await call<Written[]>(`/produce/${topic}`, { value });
      statuses.add(answer.status);
      longest = Math.max(longest, answer.ms);
      if (answer.status === 200) acknowledged.push(value);
      else await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });
  const consumeOnce = async () => {
    const answer = await call(`/consume/${group}/i/${topic}?timeout=500`, undefined, { headers: EARLIEST });
    if (answer.status === 200) for (const { value } of answer.body) seen.add(value);
    else await new Promise((resolve) => setTimeout(resolve, 50));
  };
  const consuming = (async () => {
    while (!stopped) await consumeOnce();
  })();
  const countAbove = (count: number) => () => expect(acknowledged.length).toBeGreaterThan(count);
  await eventually(countAbove(50));
  await broken.kill();
  await eventually(() => expect([...statuses]).toContain(503));
  await broken.start();
  await eventually(countAbove(acknowledged.length + 50));
  stopped = true;
  await Promise.all([...producing, consuming]);
  expect([...statuses].filter((status) => ![200, 503, 504].includes(status))).toEqual([]);
  expect(longest).toBeLessThan(4_000 + PROMPT_MS);
  await eventually(async () => {
    await consumeOnce();
    expect(acknowledged.filter((value) => !seen.has(value))).toEqual([]);
  });
});

test('paused: every request ends in bounded time, and works again afterwards', async () => {
  const topic = await kafka.topic('pause');
  const consume = (timeout: number) =>
    call<Failure>(`/consume/${kafka.name('pause')}/i/${topic}?timeout=${timeout}`, undefined, {
      headers: EARLIEST,
    });
  await call(`/produce/${topic}`, { value: 'before' });
  expect((await consume(30_000)).status).toBe(200);
  await broken.pause();
  const answers = await Promise.all([
    call<Failure>(`/produce/${topic}`, { value: 'during' }),
    call<Failure>('/fetch', { topic, partition: 0, offset: 1, timeout: 500 }),
    consume(500),
    call<Failure>('/topics'),
  ]);
  for (const { status, ms, body } of answers) {
    expect({ status, body }).toMatchObject({ status: expect.any(Number), body: { status } });
    expect([503, 504]).toContain(status);
    expect(ms).toBeLessThan(9_500);
  }
  await broken.resume();
  await eventually(async () =>
    expect((await call(`/produce/${topic}`, { value: 'after' })).status).toBe(200),
  );
  await eventually(async () => {
    const { status, body } = await call(`/consume/${kafka.name('pause')}/i/${topic}?timeout=1000`);
    expect(status).toBe(200);
    expect(body.map(({ value }) => value)).toContain('after');
  });
});
