import type { LookupAddress, lookup } from 'node:dns';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { ByteBudget } from '../../../src/lib/byte-budget.js';
import { AddressGuard } from '../../../src/lib/outbound/address-guard.js';
import type { Ways } from '../../../src/lib/outbound/connector.js';
import { Outbound, type OutboundRequest } from '../../../src/lib/outbound/outbound.js';
import { makeCertificates } from '../../support/certificates.js';
import { PROMPT_MS } from '../../support/eventually.js';
import { type Receiver, startReceiver } from '../../support/queue/queue.js';

const open: Outbound[] = [];
const receivers: Receiver[] = [];
afterEach(async () => {
  await Promise.all([...open.splice(0).map((o) => o.close()), ...receivers.splice(0).map((r) => r.stop())]);
});

function outbound(allowed: string[], answers?: LookupAddress[][], ways: Ways = {}): Outbound {
  const resolve = (_name: string, _options: object, callback: (e: null, a: LookupAddress[]) => void) =>
    callback(null, answers?.shift() ?? []);
  const client = new Outbound(
    new AddressGuard(allowed),
    ways,
    answers && (resolve as unknown as typeof lookup),
  );
  open.push(client);
  return client;
}

async function receiver(...parameters: Parameters<typeof startReceiver>): Promise<Receiver> {
  const started = await startReceiver(...parameters);
  receivers.push(started);
  return started;
}

function post(url: string, change: Partial<OutboundRequest> = {}): OutboundRequest {
  return {
    url: new URL(url),
    method: 'POST',
    headers: [],
    body: Buffer.from('body'),
    timeoutMs: 60_000,
    maxBodyBytes: 100_000,
    signal: new AbortController().signal,
    ...change,
  };
}

it('sends method, headers and bytes, and returns status, headers and bytes', async () => {
  const sink = await receiver((_, response) => {
    response.writeHead(418, { 'Set-Cookie': ['a=1', 'b=2'], 'X-One': '1' });
    response.end(Buffer.from([0, 255]));
  });
  const body = Buffer.from([1, 0, 254]);
  const reply = await outbound(['127.0.0.1']).send(
    post(`${sink.url}/a%2Fb?c`, { method: 'DELETE', headers: ['X-A', 'ä'], body }),
  );
  expect(reply).toMatchObject({ status: 418, truncated: false });
  expect(reply.headers).toMatchObject({ 'set-cookie': ['a=1', 'b=2'], 'x-one': ['1'] });
  expect(reply.body).toEqual(Buffer.from([0, 255]));
  expect(sink.received[0]).toMatchObject({ method: 'DELETE', url: '/a%2Fb?c', body });
  expect(sink.received[0]?.headers).toMatchObject({ 'x-a': 'ä', host: `127.0.0.1:${sink.port}` });
});

it('keeps connections and uses them again', async () => {
  const ports = new Set<number>();
  const sink = await receiver((_, response, raw) => {
    ports.add(raw.socket.remotePort as number);
    response.end();
  });
  const client = outbound(['127.0.0.1']);
  for (let i = 0; i < 20; i++) await client.send(post(sink.url));
  // the next request may start a moment before the last one's connection counts as free
  expect(ports.size).toBeLessThanOrEqual(5);
});

it('speaks HTTP/1.1 to a destination that offers HTTP/2 as well', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portico-test-'));
  const { serverCert, serverKey } = await makeCertificates(folder);
  const offered: string[][] = [];
  const server = createTlsServer({
    cert: readFileSync(serverCert),
    key: readFileSync(serverKey),
    ALPNCallback: ({ protocols }) => {
      offered.push(protocols);
      return 'http/1.1';
    },
  });
  server.on('tlsClientError', () => undefined).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as { port: number };
    // the certificate is nobody's; what was offered before is all that counts
    await expect(outbound(['127.0.0.1']).send(post(`https://127.0.0.1:${port}/`))).rejects.toThrow();
    expect(offered).toEqual([['http/1.1']]);
  } finally {
    server.close();
    await rm(folder, { recursive: true });
  }
});

it('makes Basic credentials of those in the URL, unless there are others', async () => {
  const sink = await receiver();
  const client = outbound(['127.0.0.1']);
  const url = `http://us%40er:pa%3Ass@127.0.0.1:${sink.port}/`;
  await client.send(post(url));
  await client.send(post(url, { headers: ['Authorization', 'Bearer own'] }));
  expect(sink.received.map(({ headers }) => headers.authorization)).toEqual([
    `Basic ${Buffer.from('us@er:pa:ss').toString('base64')}`,
    'Bearer own',
  ]);
});

describe('addresses that are not public', () => {
  it.each([
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '127.1',
    '0',
    '127.0.0.1.',
    '[::ffff:127.0.0.1]',
    '①②⑦.0.0.1',
  ])('are not connected to in the spelling %s', async (host) => {
    const sink = await receiver();
    await expect(outbound([]).send(post(`http://${host}:${sink.port}/`))).rejects.toMatchObject({
      reason: 'blocked',
      message: expect.stringMatching(/is not a public address/),
    });
    expect(sink.received).toEqual([]);
  });

  it('are not connected to through a name, not even when the same name was public a moment ago', async () => {
    const sink = await receiver();
    const target = `http://rebound.example:${sink.port}/`;
    const client = outbound([], [[{ address: '127.0.0.1', family: 4 }], [{ address: '::1', family: 6 }], []]);
    await expect(client.send(post(target))).rejects.toMatchObject({
      reason: 'blocked',
      message: expect.stringMatching(/^127\.0\.0\.1 is not/),
    });
    await expect(client.send(post(target))).rejects.toMatchObject({
      reason: 'blocked',
      message: expect.stringMatching(/^::1 is not/),
    });
    await expect(client.send(post(target))).rejects.toMatchObject({
      reason: 'blocked',
      message: expect.stringMatching(/no address/),
    });
    expect(sink.received).toEqual([]);
  });

  it('are passed over where a name has allowed ones beside them; one look-up serves check and connection', async () => {
    const sink = await receiver();
    const answers = [
      [
        { address: '::1', family: 6 },
        { address: '127.0.0.1', family: 4 },
      ],
    ];
    const reply = await outbound(['127.0.0.1'], answers).send(post(`http://mixed.example:${sink.port}/`));
    expect(reply.status).toBe(200);
    expect(answers).toEqual([]);
    expect(sink.received[0]?.headers.host).toBe(`mixed.example:${sink.port}`);
  });
});

it('does not follow a redirect', async () => {
  const sink = await receiver((_, response) => {
    response.writeHead(302, { Location: '/elsewhere' });
    response.end();
  });
  expect((await outbound(['127.0.0.1']).send(post(sink.url))).status).toBe(302);
  expect(sink.received.map(({ url }) => url)).toEqual(['/']);
});

it('stops reading a response that is too long, and cuts its connection', async () => {
  let closed: () => void = () => undefined;
  const cut = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const sink = await receiver((_, response) => {
    const piece = Buffer.alloc(65_536, 'x');
    const more = () => {
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', more).on('close', closed);
    more();
  });
  const reply = await outbound(['127.0.0.1']).send(post(sink.url));
  expect(reply).toMatchObject({ status: 200, truncated: true });
  expect(reply.body.length).toBe(100_000);
  await cut;
});

it('keeps of many long responses together what the budget has, and 16 KiB of each', async () => {
  const sink = await receiver((_, response) => void response.end(Buffer.alloc(60_000)));
  const client = outbound(['127.0.0.1']);
  const budget = new ByteBudget(100_000);
  const send = () => client.send(post(sink.url, { budget }));
  const first = await send();
  expect([first.body.length, first.truncated]).toEqual([60_000, false]);
  const second = await send();
  const third = await send();
  for (const { status, body, truncated } of [second, third]) {
    expect([status, truncated]).toEqual([200, true]);
    expect(body.length).toBeLessThan(60_000);
  }
  first.release();
  second.release();
  third.release();
  expect(budget.take(100_000)).toBe(true);
  const short = await receiver((_, response) => void response.end(Buffer.alloc(16_384)));
  expect((await client.send(post(short.url, { budget }))).body).toHaveLength(16_384);
});

it.each([
  ['never answers', () => undefined],
  [
    'drips its answer',
    (socket: Socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n');
      const timer = setInterval(() => socket.write('x'), 50);
      socket.on('close', () => clearInterval(timer));
    },
  ],
  [
    'drips its header',
    (socket: Socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 200 OK\r\nX'[0] ?? ''), 50);
      socket.on('close', () => clearInterval(timer));
    },
  ],
])('gives up in time on a destination that %s', async (_, behave) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => behave(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const started = performance.now();
  const failure = outbound(['127.0.0.1']).send(post(`http://127.0.0.1:${port}/`, { timeoutMs: 500 }));
  // "H" again and again is no HTTP: that destination may be given up even sooner
  await expect(failure).rejects.toMatchObject({ reason: expect.stringMatching(/timeout|network/) });
  expect(performance.now() - started).toBeLessThan(PROMPT_MS);
  await new Promise((resolve) => server.close(resolve));
});

it.each([
  ['refuses', undefined, /ECONNREFUSED/],
  ['resets', (socket: Socket) => socket.resetAndDestroy(), /ECONNRESET|other side closed/],
  ['talks nonsense', (socket: Socket) => socket.end('nonsense\r\n\r\n'), /./],
])('says why there is no response from a destination that %s', async (_, behave, reason) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => behave?.(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  if (behave === undefined) await new Promise((resolve) => server.close(resolve));
  const secret = outbound(['127.0.0.1']).send(post(`http://user:secret@127.0.0.1:${port}/`));
  await expect(secret).rejects.toMatchObject({ reason: 'network', message: expect.stringMatching(reason) });
  await expect(secret).rejects.not.toMatchObject({ message: expect.stringContaining('secret') });
  if (behave !== undefined) await new Promise((resolve) => server.close(resolve));
});

it('ends at once when it is told to', async () => {
  const sink = await receiver(() => undefined);
  const aborter = new AbortController();
  const sending = outbound(['127.0.0.1']).send(post(sink.url, { signal: aborter.signal }));
  setTimeout(() => aborter.abort(), 100);
  await expect(sending).rejects.toMatchObject({ reason: 'aborted' });
});

it('asks a proxy for no name that has a private address, and for one that only the proxy knows', async () => {
  const asked: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (bytes) => {
      asked.push(String(bytes).split(' ')[1] as string);
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = new URL(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
  const client = outbound([], [[{ address: '10.0.0.1', family: 4 }], []], { proxy });
  await expect(client.send(post('http://inner.example/'))).rejects.toThrow(
    '10.0.0.1 is not a public address',
  );
  await expect(client.send(post('https://unknown.example/'))).rejects.toThrow(
    'refused the connection (status 502)',
  );
  await expect(client.send(post('http://127.0.0.1:9/'))).rejects.toThrow('127.0.0.1 is not a public address');
  expect(asked).toEqual(['unknown.example:443']);
  server.close();
});
