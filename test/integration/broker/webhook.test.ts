import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';
import { TOKENS } from '../../support/tokens.js';

type Written = { topic: string; partition: number; offset: number; timestamp: number };

const { kafka, call, url } = brokerUnderTest();
const CREDENTIALS = `user=${TOKENS.username}&pass=${TOKENS.password}`;

async function post(query: string, body: string | Buffer = 'hello', headers: Record<string, string> = {}) {
  const reply = await fetch(`${url()}/broker/webhook${query}`, { method: 'POST', body, headers });
  return { status: reply.status, body: (await reply.json()) as Written[] & Failure };
}

const read = async (topic: string) => (await call('/fetch', { topic, partition: 0, offset: 0 })).body;

test('the body becomes the value, headers that are not of HTTP become headers', async () => {
  const topic = await kafka.topic('hook');
  const sent = await post(`?topic=${topic}&${CREDENTIALS}`, '{"not": "parsed"', {
    'Content-Type': 'application/json',
    'X-GitHub-Event': 'push',
    'X-Other': 'größe',
    Cookie: 'session=1',
    'X-Forwarded-For': '10.0.0.1',
    Forwarded: 'for=10.0.0.1',
    Via: '1.1 proxy',
    'Sec-Fetch-Mode': 'cors',
  });
  expect(sent).toMatchObject({ status: 200, body: [{ topic, partition: 0, offset: 0 }] });
  const [record] = await read(topic);
  expect(record).toMatchObject({ key: '', value: '{"not": "parsed"' });
  expect(record?.headers).toEqual([
    { key: 'x-github-event', value: 'push' },
    { key: 'x-other', value: 'größe' },
  ]);
});

test('credentials in the header, a body on GET, none at all, a trailing slash', async () => {
  const topic = await kafka.topic('forms');
  const basic = `Basic ${Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64')}`;
  expect((await post(`/?topic=${topic}`, '', { Authorization: basic })).status).toBe(200);
  expect((await call<Written[]>(`/webhook?topic=${topic}`)).body).toMatchObject([{ offset: 1 }]);
  expect((await read(topic)).map(({ value, headers }) => [value, headers])).toEqual([
    ['', []],
    ['', []],
  ]);
});

test('bytes are stored as they are', async () => {
  const topic = await kafka.topic('bytes');
  expect((await post(`?topic=${topic}&${CREDENTIALS}`, Buffer.from([0xff, 0, 0x80]))).status).toBe(200);
  expect(await kafka.rawValues(topic)).toEqual([Buffer.from([0xff, 0, 0x80])]);
});

test('credentials in the query count here only, and must be right', async () => {
  const topic = await kafka.topic('who');
  expect(await post(`?topic=${topic}`)).toMatchObject({ status: 401, body: { status: 401 } });
  expect(await post(`?topic=${topic}&user=${TOKENS.username}&pass=wrong`)).toMatchObject({ status: 401 });
  const elsewhere = await fetch(`${url()}/broker/topics?${CREDENTIALS}`);
  expect(elsewhere.status).toBe(401);
  expect(await read(topic)).toEqual([]);
});

test.each([
  ['no topic', '', 400],
  ['a name that cannot be', 'topic=a%2Fb&', 400],
  ['an unknown topic', 'topic=test-no-such-topic&', 404],
])('refuses %s', async (_name, query, status) => {
  expect(await post(`?${query}${CREDENTIALS}`)).toMatchObject({ status, body: { status } });
});
