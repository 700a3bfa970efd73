import { request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { largeReply, startHttpCore, TOKEN } from '../../support/http-instance.js';
import { stopAfterEach } from '../../support/stop-after-each.js';

const SIZE = 2_000_000;
const stopLater = stopAfterEach();

async function start(compression: Record<string, unknown>, size = SIZE) {
  return stopLater(await startHttpCore({ compression }, { routes: [largeReply(size)] }));
}

/** A reply as it comes over the wire. */
function get(port: number, accepts: string | undefined, path = '/test/large', method = 'GET') {
  return new Promise<{ coding: string | undefined; vary: string | undefined; length: number; body: Buffer }>(
    (resolve, reject) => {
      const headers = {
        authorization: `Bearer ${TOKEN}`,
        ...(accepts === undefined ? {} : { 'accept-encoding': accepts }),
      };
      const asked = request({ port, host: '127.0.0.1', path, method, headers }, (reply) => {
        const pieces: Buffer[] = [];
        reply.on('data', (piece: Buffer) => pieces.push(piece));
        reply.on('end', () =>
          resolve({
            coding: reply.headers['content-encoding'],
            vary: reply.headers.vary,
            length: Number(reply.headers['content-length']),
            body: Buffer.concat(pieces),
          }),
        );
      });
      asked.on('error', reject).end();
    },
  );
}

const text = `${'x'.repeat(SIZE)}END`;

it.each([
  ['gzip', 'gzip', gunzipSync],
  ['gzip, deflate, br', 'gzip', gunzipSync],
  ['br;q=1, gzip;q=0.5', 'br', brotliDecompressSync],
  ['*', 'br', brotliDecompressSync],
] as const)('a client that accepts %s gets %s', async (accepts, coding, unpack) => {
  const { port } = await start({ enabled: true });
  const reply = await get(port, accepts);
  expect(reply).toMatchObject({ coding, vary: 'Accept-Encoding', length: reply.body.length });
  expect(reply.body.length).toBeLessThan(SIZE / 10);
  expect(unpack(reply.body).toString()).toBe(text);
});

it.each([undefined, 'identity', 'deflate', 'gzip;q=0', ''])(
  'a client that accepts %s gets it as it is, and caches are told that others may not',
  async (accepts) => {
    const { port } = await start({ enabled: true });
    const reply = await get(port, accepts);
    expect(reply).toMatchObject({ coding: undefined, vary: 'Accept-Encoding', length: text.length });
  },
);

it('a small reply, an answer to HEAD and one of a gateway that packs none go out as they are', async () => {
  const small = await start({ enabled: true }, 1_000);
  expect(await get(small.port, 'gzip')).toMatchObject({ coding: undefined, vary: undefined, length: 1_003 });
  const large = await start({ enabled: true });
  expect(await get(large.port, 'gzip', '/test/large', 'HEAD')).toMatchObject({
    coding: undefined,
    vary: 'Accept-Encoding',
    length: text.length,
  });
  const off = await start({});
  expect(await get(off.port, 'gzip')).toMatchObject({
    coding: undefined,
    vary: undefined,
    length: text.length,
  });
});

it('of many at once each is whole, packed or not, and in the order of its connection', async () => {
  const { port } = await start({ enabled: true });
  const replies = await Promise.all(Array.from({ length: 12 }, () => get(port, 'gzip')));
  const codings = new Set(replies.map(({ coding }) => coding));
  expect([...codings].sort()).toEqual(['gzip', undefined]);
  for (const { coding, body } of replies)
    expect((coding === 'gzip' ? gunzipSync(body) : body).toString()).toBe(text);
});

it('a client that leaves while its reply is packed harms nobody, and no deadline ends it', async () => {
  const { port, core } = await start({ enabled: true }, 30_000_000);
  const gone = request({
    port,
    host: '127.0.0.1',
    path: '/test/large',
    headers: { authorization: `Bearer ${TOKEN}`, 'accept-encoding': 'br' },
  });
  gone.on('error', () => undefined).end();
  while (core.inFlight === 0) await new Promise(setImmediate);
  gone.destroy();
  expect((await get(port, 'gzip')).coding).toBe('gzip');
});

it('/openapi.json is packed whatever the configuration says', async () => {
  const { port } = await start({});
  const { coding, vary, body } = await get(port, 'br', '/openapi.json');
  const plain = await get(port, undefined, '/openapi.json');
  expect([vary, plain.vary, plain.coding]).toEqual(['Accept-Encoding', 'Accept-Encoding', undefined]);
  expect((coding === 'br' ? brotliDecompressSync(body) : body).toString()).toBe(plain.body.toString());
});
