import { Client, QstashError } from '@upstash/qstash';
import { type SdkSite, startSdkSite } from '../support/queue/queue-sdk.js';

let site: SdkSite;
let client: Client;
let sink: string;
let at: SdkSite['at'];

beforeAll(async () => {
  site = await startSdkSite('test_queue_acceptance', {}, ({ path }) =>
    path === '/broken' ? { status: 500, body: 'broken' } : { body: `done ${path}` },
  );
  ({ client, sink, at } = site);
});
afterAll(() => site?.stop());
afterEach(() => {
  jest.restoreAllMocks();
});

it('publishJSON: the destination gets it, verifies it, and its answer comes to the callback', async () => {
  const reply = await client.publishJSON({
    url: `${sink}/work?a=1`,
    body: { hello: 'wörld' },
    headers: { 'My-Header': 'mine' },
    callback: `${sink}/callback`,
  });
  expect(reply.messageId).toMatch(/^msg_/);
  const [delivery] = await at('/work?a=1');
  expect(delivery).toMatchObject({ method: 'POST', body: JSON.stringify({ hello: 'wörld' }) });
  expect(delivery?.headers).toMatchObject({
    'content-type': 'application/json',
    'my-header': 'mine',
    'upstash-message-id': reply.messageId,
    'upstash-retried': '0',
  });
  expect(Object.keys(delivery?.headers ?? {}).filter((name) => name.includes('telemetry'))).toEqual([]);
  const told = JSON.parse((await at('/callback'))[0]?.body ?? '') as Record<string, unknown>;
  expect(told).toMatchObject({
    status: 200,
    sourceMessageId: reply.messageId,
    retried: 0,
    url: `${sink}/work?a=1`,
  });
  expect(Buffer.from(String(told.body), 'base64').toString()).toBe('done /work?a=1');
});

it('publish: method, delay, retries and the failure callback as the SDK sends them', async () => {
  const started = performance.now();
  const reply = await client.publish({
    url: `${sink}/broken`,
    method: 'PUT',
    body: 'text',
    delay: 1,
    retries: 1,
    timeout: '5s',
    failureCallback: `${sink}/failed`,
  });
  const attempts = await at('/broken', 2);
  expect(performance.now() - started).toBeGreaterThanOrEqual(1_000);
  expect(attempts.map(({ method, body }) => [method, body])).toEqual([
    ['PUT', 'text'],
    ['PUT', 'text'],
  ]);
  const told = JSON.parse((await at('/failed'))[0]?.body ?? '') as Record<string, unknown>;
  expect(told).toMatchObject({
    status: 500,
    retried: 1,
    maxRetries: 1,
    sourceMessageId: reply.messageId,
    dlqId: expect.any(String),
  });
});

it('says what is wrong in words that the SDK shows', async () => {
  // the SDK logs every refusal
  jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const wrong = client.publish({ url: `${sink}/work`, retries: 50 });
  await expect(wrong).rejects.toBeInstanceOf(QstashError);
  await expect(wrong).rejects.toMatchObject({ status: 400, message: expect.stringContaining('limit of 5') });
  const stranger = new Client({ baseUrl: `${site.gateway.url}/queue`, token: 'wrong' });
  await expect(stranger.publish({ url: `${sink}/work` })).rejects.toMatchObject({ status: 401 });
  await expect(client.publish({ url: 'http://10.0.0.1/' })).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('10.0.0.1 is not a public address'),
  });
});
