import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

const namespace = queueNamespace();
let gateway: RunningGateway;
let receiver: Receiver;

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  receiver = await startReceiver();
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});

async function batch(entries: readonly object[]): Promise<{ messageId?: string; error?: string }[]> {
  const reply = await fetch(`${gateway.url}/queue/v2/batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}` },
    body: JSON.stringify(entries),
  });
  expect(reply.status).toBe(200);
  return (await reply.json()) as { messageId?: string; error?: string }[];
}

it.each([
  ['its field', (name: string) => ({ queue: name })],
  ['an instruction', (name: string) => ({ headers: { 'Upstash-Queue-Name': name } })],
])('entries of a queue, named by %s, are delivered in their order, and bad ones are told', async (_, by) => {
  const path = `/order-${Object.keys(by('x'))[0]}`;
  const entries = Array.from({ length: 60 }, (_, i) => ({
    destination: i === 7 ? 'ftp://nowhere' : `${receiver.url}${path}/${i}`,
    ...by(i % 2 === 0 ? `${path.slice(1)}.even` : `${path.slice(1)}.odd`),
  }));
  const results = await batch(entries);
  expect(results.flatMap(({ error }, i) => (error === undefined ? [] : [[i, error]]))).toEqual([
    [7, expect.stringContaining('ftp')],
  ]);
  const arrived = () =>
    receiver.received.flatMap(({ url }) => (url.startsWith(path) ? [Number(url.split('/')[2])] : []));
  await eventually(() => expect(arrived()).toHaveLength(59));
  for (const rest of [0, 1]) {
    const queue = arrived().filter((n) => n % 2 === rest);
    expect(queue).toEqual([...queue].sort((a, b) => a - b));
  }
  const rows = await namespace.query<{ id: string; url: string }>('select id, url from $schema.messages');
  const urls = new Map(rows.map(({ id, url }) => [id, url]));
  for (const [i, { messageId }] of results.entries())
    if (messageId !== undefined) expect(urls.get(messageId)).toBe(entries[i]?.destination);
});

it('entries of one flow-control key are stored in one transaction, and answered in their order', async () => {
  const of = (key: string, value: string) => ({
    'Upstash-Flow-Control-Key': key,
    'Upstash-Flow-Control-Value': value,
    // a message that begins is written anew by another transaction
    'Upstash-Delay': '1h',
  });
  const entries = Array.from({ length: 100 }, (_, i) => ({
    destination: i === 7 ? 'ftp://nowhere' : `${receiver.url}/keyed/${i}`,
    headers: of(i % 2 === 0 ? 'even' : 'odd', i >= 98 ? 'parallelism=3' : 'parallelism=1'),
  }));
  const results = await batch(entries);
  expect(results.flatMap(({ error }, i) => (error === undefined ? [] : [i]))).toEqual([7]);
  const rows = await namespace.query<{ id: string; url: string; transaction: string }>(
    "select id, url, xmin::text as transaction from $schema.messages where url like '%/keyed/%'",
  );
  expect(rows).toHaveLength(99);
  expect(new Set(rows.map(({ transaction }) => transaction)).size).toBe(2);
  const urls = new Map(rows.map(({ id, url }) => [id, url]));
  for (const [i, { messageId }] of results.entries())
    if (messageId !== undefined) expect(urls.get(messageId)).toBe(entries[i]?.destination);
  const limits = await namespace.query<{ parallelism: number }>(
    "select parallelism from $schema.flow_controls where key in ('even', 'odd')",
  );
  expect(limits.map(({ parallelism }) => parallelism)).toEqual([3, 3]);
});

it('entries of very many keys, queues and ids are stored in few transactions, those of one in their order', async () => {
  const ways = [
    (i: number) => ({
      headers: { 'Upstash-Flow-Control-Key': `k${i}`, 'Upstash-Flow-Control-Value': 'rate=1' },
    }),
    (i: number) => ({ queue: `q${i}` }),
    (i: number) => ({ headers: { 'Upstash-Deduplication-Id': `d${i}` } }),
  ];
  const entries = Array.from({ length: 150 }, (_, i) => {
    const way = ways[i % 3]?.(i % 120) as { queue?: string; headers?: Record<string, string> };
    // a message that begins is written anew by another transaction
    return {
      destination: `${receiver.url}/few/${i}`,
      ...way,
      headers: { ...way.headers, 'Upstash-Delay': '1h' },
    };
  });
  const results = await batch(entries);
  expect(results.map(({ error }) => error)).toEqual(Array(150).fill(undefined));
  const [repeated, first] = [results[122], results[2]];
  expect(repeated).toEqual({
    messageId: first?.messageId,
    url: `${receiver.url}/few/122`,
    deduplicated: true,
  });
  const rows = await namespace.query<{ url: string; queue: string; transaction: string | null }>(
    // the head of a queue is written anew when it is let go
    `select url, coalesce(queue_name, flow_key) as queue, case when queue_name is null then xmin::text end as transaction
      from $schema.messages where url like '%/few/%' order by seq`,
  );
  expect(rows).toHaveLength(140);
  expect(new Set(rows.map(({ transaction }) => transaction)).size).toBeLessThanOrEqual(8);
  const placesOf = (queue: string) =>
    rows.flatMap((row) => (row.queue === queue ? [Number(row.url.split('/').at(-1))] : []));
  expect([placesOf('k0'), placesOf('q1'), placesOf('k117')]).toEqual([[0, 120], [1, 121], [117]]);
});

it('as many entries of one queue as a batch may have are answered in time, each of them sent or told', async () => {
  const entries = Array.from({ length: 10_000 }, (_, i) => ({
    destination: `${receiver.url}/many/${i}`,
    headers: { 'Upstash-Delay': '1h' },
    queue: 'many',
  }));
  const results = await batch(entries);
  expect(results).toHaveLength(10_000);
  const sent = results.flatMap(({ messageId }) => messageId ?? []);
  expect(results.filter(({ error }) => error !== undefined).length).toBe(10_000 - sent.length);
  const rows = await namespace.query<{ id: string }>(
    `select id from $schema.messages where queue_name = 'many' order by seq`,
  );
  expect(rows.map(({ id }) => id)).toEqual(sent);
});

it.each(['Upstash-Workflow-Init', 'upstash-failure-callback-feature-set', 'Service-Workflow-RunId'])(
  'a batch with %s is refused as a whole, whatever else is in it',
  async (name) => {
    const destination = `${receiver.url}/beside-workflow`;
    const post = (path: string, headers: Record<string, string>, body: string) =>
      fetch(`${gateway.url}/queue/v2/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKENS.queue}`, ...headers },
        body,
      });
    const others = Array.from({ length: 300 }, () => ({ destination }));
    const batch = JSON.stringify([...others, { destination, headers: { [name]: 'true' } }]);
    for (const reply of [
      await post('batch', {}, batch),
      await post(`publish/${destination}`, { [name]: 'x' }, ''),
    ]) {
      expect(reply.status).toBe(412);
      expect(((await reply.json()) as { error: string }).error).toMatch(
        new RegExp(`${name}|no workflow run|body of a step`, 'i'),
      );
    }
    const rows = await namespace.query('select 1 from $schema.messages where url = $1', [destination]);
    expect(rows).toEqual([]);
  },
);
