import { promisify } from 'node:util';
import { brotliCompress, deflate, gzip, zstdCompress } from 'node:zlib';
import { services } from '../../../src/services/index.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema } from '../../support/vector.js';

const pack = {
  gzip: promisify(gzip),
  deflate: promisify(deflate),
  br: promisify(brotliCompress),
  zstd: promisify(zstdCompress),
} as unknown as Record<string, (body: Buffer | string) => Promise<Buffer>>;
const SCHEMA = 'test_content_coding';
const namespace = queueNamespace();
let gateway: RunningGateway;
let receiver: Receiver;

beforeAll(async () => {
  const vector = { database: { schema: SCHEMA } };
  const apart = services.map(({ name, probe }) => [name, probe.apart]);
  gateway = await startGateway({ ...Object.fromEntries(apart), queue: namespace.config, vector });
  receiver = await startReceiver();
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
  await dropSchema(SCHEMA);
});

const BASIC = `Basic ${Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64')}`;
const AUTHORIZATION: Record<string, string> = { broker: BASIC };
const tokenOf = (service: string) =>
  AUTHORIZATION[service] ?? `Bearer ${TOKENS[service as 'kv' | 'vector' | 'queue']}`;

async function send(path: string, coding: string, body: Buffer | string) {
  const [service = ''] = path.split('/').filter((part) => part !== '');
  const reply = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: tokenOf(service), 'content-encoding': coding },
    body: body as string,
  });
  return { status: reply.status, headers: reply.headers, body: (await reply.json()) as { error?: string } };
}

it.each(Object.keys(pack))('a body in %s is decoded', async (coding) => {
  const value = 'ä'.repeat(1_000);
  const command = await (pack[coding] as (typeof pack)['gzip'])(JSON.stringify(['ECHO', value]));
  expect(await send('/kv', coding, command)).toMatchObject({ status: 200, body: { result: value } });
});

it.each(Object.keys(pack))('what stands behind a body in %s is not passed over', async (coding) => {
  const one = await (pack[coding] as (typeof pack)['gzip'])(JSON.stringify(['ECHO', 'one']));
  for (const behind of [Buffer.from('more'), one]) {
    const { status, body } = await send('/kv', coding, Buffer.concat([one, behind]));
    expect([status, typeof body.error]).toEqual([400, 'string']);
  }
});

describe.each([
  ...services
    .filter(({ name }) => name !== 'queue')
    .map(({ name, probe }) => [name, `/${name}${probe.takesBody}`]),
  // where a publish keeps what it is packed in
  ['queue', '/queue/v2/batch'],
])('%s', (_name, path) => {
  it('refuses a coding that it does not know, and says which it does', async () => {
    const { status, headers, body } = await send(path, 'compress', 'x');
    expect([status, headers.get('accept-encoding')]).toEqual([415, 'gzip, deflate, br, zstd']);
    expect(body.error).toMatch(/content coding/);
  });

  it('refuses what is not what it says, and what unpacks to too much', async () => {
    expect((await send(path, 'gzip', 'no gzip')).status).toBe(400);
    const bomb = await pack.gzip?.(Buffer.alloc(200 * 1024 * 1024));
    const begin = performance.now();
    expect((await send(path, 'gzip', bomb as Buffer)).status).toBe(413);
    expect(performance.now() - begin).toBeLessThan(5_000);
  });
});

it('what a message is packed in is for its destination', async () => {
  const packed = (await pack.gzip?.('for the destination')) as Buffer;
  await publishUntilTaken(gateway, `${receiver.url}/packed`, { 'content-encoding': 'gzip' }, packed);
  await eventually(() => expect(receiver.received).toHaveLength(1));
  expect(receiver.received[0]?.body.equals(packed)).toBe(true);
  expect(receiver.received[0]?.headers['content-encoding']).toBe('gzip');
});
