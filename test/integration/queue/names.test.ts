import { request } from 'node:http';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

/** Names of headers, labels, keys and queues: they are found as they were given. */
const namespace = queueNamespace();
let gateway: RunningGateway;
let receiver: Receiver;

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  receiver = await startReceiver(
    (_, response) => void response.writeHead(500, { 'x-MIXED-case': '1' }).end('no'),
  );
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});

/** Header values go out as these bytes, which `fetch` refuses. */
function post(
  path: string,
  headers: Record<string, Buffer | string>,
): Promise<{ status: number; body: string }> {
  const { port } = new URL(gateway.url);
  const values = Object.entries(headers).map(([name, value]) => [
    name,
    Buffer.from(value).toString('latin1'),
  ]);
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        port,
        method: 'POST',
        path: `/queue${path}`,
        headers: { authorization: `Bearer ${TOKENS.queue}`, ...Object.fromEntries(values) },
      },
      (reply) => {
        let body = '';
        reply.setEncoding('utf8').on('data', (text: string) => {
          body += text;
        });
        reply.on('end', () => resolve({ status: reply.statusCode ?? 0, body }));
      },
    );
    // with a text as body Node would write the headers as UTF-8 once more
    sent.on('error', reject).end(Buffer.from('hello'));
  });
}

async function read(path: string): Promise<Record<string, unknown>> {
  const reply = await fetch(`${gateway.url}/queue${path}`, {
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });
  return (await reply.json()) as Record<string, unknown>;
}

it('labels and keys in UTF-8 are shown and found as they were sent; forwarded headers keep their bytes', async () => {
  const published = await post(`/v2/publish/${receiver.url}/utf8`, {
    'upstash-label': 'grün,日本',
    'upstash-flow-control-key': 'schlüssel',
    'upstash-flow-control-value': 'parallelism=1',
    'upstash-forward-x-name': 'Zoë',
    'upstash-retries': '0',
  });
  expect(published.status).toBe(200);
  const { messageId } = JSON.parse(published.body) as { messageId: string };
  expect(await read(`/v2/messages/${messageId}`)).toMatchObject({
    labels: ['grün', '日本'],
    flowControlKey: 'schlüssel',
  });
  expect(await read(`/v2/flowControl/${encodeURIComponent('schlüssel')}`)).toMatchObject({
    flowControlKey: 'schlüssel',
  });
  for (const query of ['label=日本', 'flowControlKey=schlüssel'])
    await eventually(async () =>
      expect((await read(`/v2/dlq?${encodeURI(query)}`)).messages).toMatchObject([{ messageId }]),
    );
  const received = receiver.received.find(({ url }) => url === '/utf8');
  expect(Buffer.from(String(received?.headers['x-name']), 'latin1').toString()).toBe('Zoë');
});

it('a label that is no UTF-8 is taken byte for byte', async () => {
  const headers = { 'upstash-label': Buffer.from([0x67, 0xfc]), 'upstash-delay': '1h' };
  const { body } = await post(`/v2/publish/${receiver.url}/latin1`, headers);
  const { messageId } = JSON.parse(body) as { messageId: string };
  expect(await read(`/v2/messages/${messageId}`)).toMatchObject({ label: 'gü' });
});

it('a message that Portico delivered can be published as it came', async () => {
  const { status } = await post(`/v2/publish/${receiver.url}/again`, {
    ...{ 'upstash-topic-name': 'group', 'upstash-message-id': 'msg_x', 'upstash-retried': '0' },
    ...{ 'upstash-signature': 'x', 'upstash-caller-ip': '1.2.3.4', 'upstash-delay': '1h' },
  });
  expect(status).toBe(200);
});

it("a response's header names are spelled alike in callbacks, log and dead letters", async () => {
  const { body } = await post(`/v2/publish/${receiver.url}/cased`, {
    'upstash-callback': `${receiver.url}/told`,
    'upstash-retries': '0',
  });
  const { messageId } = JSON.parse(body) as { messageId: string };
  const find = () => receiver.received.find(({ url }) => url === '/told');
  await eventually(() => expect(find()).toBeDefined());
  expect(JSON.parse(String(find()?.body))).toMatchObject({ header: { 'X-Mixed-Case': ['1'] } });
  await eventually(async () =>
    expect((await read(`/v2/dlq?messageId=${messageId}`)).messages).toMatchObject([
      { responseHeader: { 'X-Mixed-Case': ['1'] } },
    ]),
  );
  expect((await read(`/v2/events?messageId=${messageId}&state=ERROR`)).events).toMatchObject([
    { responseHeader: { 'X-Mixed-Case': ['1'] }, responseHeaders: { 'X-Mixed-Case': ['1'] } },
  ]);
});

it.each(['.', '..'])('a queue cannot be named %s', async (queueName) => {
  const reply = await fetch(`${gateway.url}/queue/v2/queues`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}`, 'content-type': 'application/json' },
    body: JSON.stringify({ queueName }),
  });
  expect(reply.status).toBe(400);
});
