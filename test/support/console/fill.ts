import { type ConsoleSite, CREDENTIALS, HOSTILE } from './site.js';

export const PREFIX = 'console-shop:';
export const HOSTILE_KEY = `${PREFIX}${HOSTILE}`;

const GENRES = ['drama', 'comedy', 'science fiction', 'documentary'] as const;

/** What a small shop would have in each service, with markup in whatever takes a name. */
export interface Filled {
  readonly topic: string;
  readonly group: string;
  readonly dead: string;
  readonly delivered: string;
}

export async function fill(site: ConsoleSite): Promise<Filled> {
  const [, , { topic, group }, { dead, delivered }] = await Promise.all([
    fillKv(site),
    fillVector(site),
    fillBroker(site),
    fillQueue(site),
  ]);
  return { topic, group, dead, delivered };
}

async function fillKv(site: ConsoleSite): Promise<void> {
  const order = JSON.stringify({ id: 4711, items: [{ sku: 'tea-green', count: 2 }], paid: true });
  const commands = [
    ['SET', `${PREFIX}order:4711`, order],
    ['SET', `${PREFIX}session:9f2c`, 'signed in', 'EX', 1_800],
    ['HSET', `${PREFIX}user:1`, 'name', 'Ada', 'city', 'Lübeck', HOSTILE, HOSTILE],
    ['RPUSH', `${PREFIX}jobs`, 'pack', 'label', 'ship'],
    ['SADD', `${PREFIX}tags`, 'tea', 'green', 'organic'],
    ['ZADD', `${PREFIX}best-sellers`, 97, 'tea-green', 41, 'tea-black', 12, 'mug'],
    ['XADD', `${PREFIX}events`, '*', 'type', 'order', 'id', '4711'],
    ['SET', HOSTILE_KEY, HOSTILE],
    ...Array.from({ length: 60 }, (_, i) => [
      'SET',
      `${PREFIX}product:${String(i).padStart(3, '0')}`,
      `tea ${i}`,
    ]),
  ];
  await site.call('/kv/pipeline', { as: CREDENTIALS.kv, body: commands });
}

/** Four clouds of points, one a genre. */
async function fillVector(site: ConsoleSite): Promise<void> {
  // the same in every run
  let seed = 7;
  const noise = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647 - 0.5;
  };
  const records = Array.from({ length: 240 }, (_, i) => {
    const genre = i % GENRES.length;
    const vector = Array.from({ length: 64 }, (_, j) => (j % 4 === genre ? 0.6 : 0) + 2 * noise() * noise());
    return {
      id: `film-${String(i).padStart(3, '0')}`,
      vector,
      metadata: { genre: GENRES[genre], year: 1960 + (i % 60), note: i === 0 ? HOSTILE : 'as it is' },
      data: `Film ${i}, a ${GENRES[genre]}`,
    };
  });
  await site.call('/vector/upsert', { as: CREDENTIALS.vector, body: records });
}

async function fillBroker(site: ConsoleSite) {
  const topic = await site.kafka.topic('orders', 3);
  const group = site.kafka.name('billing');
  const records = Array.from({ length: 90 }, (_, i) => ({
    key: `customer-${i % 7}`,
    value: JSON.stringify({ order: 1_000 + i, total: 12.5 + i, note: i === 0 ? HOSTILE : '' }),
    headers: [{ key: 'source', value: HOSTILE }],
  }));
  await site.call(`/broker/produce/${topic}`, { as: CREDENTIALS.broker, body: records });
  const consume = `/broker/consume/${group}/one/${topic}?timeout=20000&limit=30`;
  const headers = { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Enable-Auto-Commit': 'false' };
  await site.call(consume, { method: 'GET', as: CREDENTIALS.broker, headers });
  await site.call(`/broker/commit/${group}/one`, { as: CREDENTIALS.broker });
  return { topic, group };
}

async function fillQueue(site: ConsoleSite) {
  const as = CREDENTIALS.queue;
  const publish = async (
    path: string,
    headers: Record<string, string> = {},
    body: unknown = { order: 17 },
  ) => {
    const sent = await site.call(`/queue/v2/publish/${site.receiver}${path}`, { as, headers, body });
    return (sent as { messageId: string }).messageId;
  };
  const delivered = await publish('/orders', { 'Upstash-Label': 'orders' });
  for (let i = 0; i < 6; i += 1) await publish('/orders', { 'Upstash-Label': 'orders' }, { order: 100 + i });
  await publish('/later', { 'Upstash-Delay': '2h' });
  await publish('/flow', {
    'Upstash-Flow-Control-Key': 'shop',
    'Upstash-Flow-Control-Value': 'parallelism=3, rate=10, period=60',
  });
  const dead = await publish(
    '/broken',
    { 'Upstash-Retries': '1', 'Upstash-Retry-Delay': '200' },
    { note: HOSTILE },
  );
  await publish('/broken?other', { 'Upstash-Retries': '0' });
  await site.call(`/queue/v2/schedules/${site.receiver}/nightly`, {
    as,
    headers: { 'Upstash-Cron': '0 3 * * *', 'Upstash-Schedule-Id': 'nightly-report' },
    body: 'report',
  });
  await site.call('/queue/v2/topics/shop/endpoints', {
    as,
    body: {
      endpoints: [{ name: 'billing', url: `${site.receiver}/billing` }, { url: `${site.receiver}/stock` }],
    },
  });
  await site.call('/queue/v2/queues', { as, body: { queueName: 'invoices', parallelism: 2 } });
  await site.call(`/queue/v2/enqueue/invoices/${site.receiver}/invoice`, { as, body: { invoice: 1 } });
  return { dead, delivered };
}

/** What `fill` has put where other tests might see it. */
export async function clear(site: ConsoleSite): Promise<void> {
  const found = (await site.call('/kv', { as: CREDENTIALS.kv, body: ['KEYS', `${PREFIX}*`] })) as {
    result: string[];
  };
  if (found.result.length > 0) await site.call('/kv', { as: CREDENTIALS.kv, body: ['DEL', ...found.result] });
}
