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
