import { z } from 'zod';
import type { BoundRoute } from '../../../src/http/route.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { largeReply, startHttpCore, TOKEN } from '../../support/http-instance.js';
import { RawClient } from '../../support/raw-client.js';

const AUTH = { authorization: `Bearer ${TOKEN}` };
let core: Awaited<ReturnType<typeof startHttpCore>>;

beforeAll(async () => {
  core = await startHttpCore({ bodyIdleTimeoutMs: 2_000 }, { timeoutMs: 6_000 });
});
afterAll(() => core.stop());

const call = (path: string, init: RequestInit = {}) =>
  fetch(`${core.url}${path}`, { ...init, headers: { ...AUTH, ...(init.headers as Record<string, string>) } });

describe('routing and input', () => {
  it('hands path, query, headers under the contract names, and body to the handler, whatever the content type', async () => {
    const reply = await call('/test/echo/a%2Fb?times=2', {
      method: 'POST',
      body: '{"topK":3}',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'upstash-mode': 'x' },
    });
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await reply.json()).toEqual({
      params: { name: 'a/b' },
      query: { times: 2 },
      headers: { 'service-mode': 'x' },
      body: { topK: 3 },
    });
  });

  it('reads a body on GET and treats an empty one as absent', async () => {
    const client = await RawClient.open(core.port);
    client.write(
      `GET /test/echo/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 10\r\n\r\n{"topK":1}`,
    );
    expect(await client.until(/"topK":1/)).toContain('HTTP/1.1 200');
    client.end();
    const empty = await call('/test/echo/x', { method: 'POST', body: ' \n' });
    expect(((await empty.json()) as { body?: unknown }).body).toBeUndefined();
  });

  it('gives a raw route the target as sent and every byte of the body', async () => {
    const reply = await call('/test/raw/a%20b//c%FF?x=1&x=%2B', {
      method: 'POST',
      body: new Uint8Array([0, 255, 10]),
    });
    expect(await reply.json()).toEqual({ target: '/a%20b//c%FF?x=1&x=%2B', size: 3 });
  });

  it.each([
    ['malformed', '{"topK":', 400, 'invalid_json', /not valid JSON/],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 400, 'invalid_json', /UTF-8/],
    ['wrongly typed', '{"topK":"3"}', 400, 'invalid_request', /body\.topK: .*number/],
    ['with an unknown key', '{"topK":1,"topk":2}', 400, 'invalid_request', /topk/],
    ['deep', `${'['.repeat(50_000)}${']'.repeat(40_000)}`, 400, 'invalid_json', /JSON/],
    ['deep and closed', `${'['.repeat(40_000)}${']'.repeat(40_000)}`, 400, 'invalid_request', /body/],
  ])('refuses a body that is %s with a clear error', async (_, body, status, code, text) => {
    const before = core.seen.bodies;
    const reply = await call('/test/echo/x', { method: 'POST', body: body as string });
    expect(reply.status).toBe(status);
    const error = (await reply.json()) as { error: string; status: number; code: string };
    expect(error).toMatchObject({ status, code });
    expect(error.error).toMatch(text);
    expect(core.seen.bodies).toBe(before);
  });

  it.each(['/test/nope', '/test/echo', '/nope', '/', '/test%2Fecho/x'])(
    'answers 404 as JSON at %s',
    async (path) => {
      const reply = await call(path);
      expect(reply.status).toBe(404);
      expect(await reply.json()).toMatchObject({ status: 404 });
    },
  );

  it('answers 405 with Allow, and 400 for a path that cannot be decoded', async () => {
    const wrong = await call('/test/echo/x', { method: 'DELETE' });
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get('allow')).toBe('GET, POST, HEAD');
    expect(await wrong.json()).toMatchObject({ code: 'method_not_allowed' });
    const undecodable = await call('/test/echo/%E0%A4%A');
    expect(undecodable.status).toBe(400);
    expect(await undecodable.json()).toMatchObject({ code: 'invalid_request' });
  });

  it('answers HEAD like GET without a body', async () => {
    const reply = await call('/test/echo/x', { method: 'HEAD' });
    expect(reply.status).toBe(200);
    expect(Number(reply.headers.get('content-length'))).toBeGreaterThan(0);
    expect(await reply.text()).toBe('');
  });

  it('never shows what a handler threw', async () => {
    const reply = await call('/test/fails');
    expect(reply.status).toBe(500);
    expect(await reply.text()).not.toContain('secret');
  });
});

describe('credentials', () => {
  it.each([
    undefined,
    'Bearer wrong',
    `Basic ${TOKEN}`,
    `Bearer ${TOKEN}x`,
    'Bearer',
    `Bearer ${TOKEN.slice(0, -1)}é`,
  ])('answers 401 for %s', async (authorization) => {
    const reply = await fetch(`${core.url}/test/echo/x`, {
      headers:
        authorization === undefined ? {} : { authorization: Buffer.from(authorization).toString('latin1') },
    });
    expect(reply.status).toBe(401);
    expect(reply.headers.get('www-authenticate')).toContain('Bearer');
    expect(await reply.json()).toMatchObject({ code: 'unauthorized' });
  });

  it('answers 401 before the body has arrived, and before 100 Continue', async () => {
    const client = await RawClient.open(core.port);
    client.write(
      'POST /test/echo/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n',
    );
    const reply = await client.until(/unauthorized/);
    expect(reply).toContain('HTTP/1.1 401');
    expect(reply).not.toContain('100 Continue');
    client.end();
  });

  it('grants 100 Continue to a request with credentials', async () => {
    const client = await RawClient.open(core.port);
    client.write(
      `POST /test/echo/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n`,
    );
    await client.until(/HTTP\/1.1 100 Continue/);
    client.write('{"topK":7}');
    expect(await client.until(/"topK":7/)).toContain('HTTP/1.1 200');
    client.end();
  });
});

describe('limits and time', () => {
  it('answers 413 by Content-Length and by counting, as JSON, and keeps the connection usable', async () => {
    const client = await RawClient.open(core.port);
    client.write(
      `POST /test/raw HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 200000\r\n\r\n`,
    );
    expect(await client.until(/payload_too_large/)).toContain('HTTP/1.1 413');
    client.write('x'.repeat(200_000));
    client.write(`GET /test/raw/again HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
    expect(await client.until(/again/)).toContain('HTTP/1.1 200');
    client.end();
    const chunked = await call('/test/raw', {
      method: 'POST',
      body: new Blob(['y'.repeat(150_000)]).stream(),
      duplex: 'half',
    } as RequestInit);
    expect(chunked.status).toBe(413);
    expect(await chunked.json()).toMatchObject({
      code: 'payload_too_large',
      error: expect.stringContaining('100000'),
    });
  });

  it('reads a slow body in full', async () => {
    const client = await RawClient.open(core.port);
    client.write(
      `POST /test/raw HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 4\r\n\r\n`,
    );
    // 2.8 s in all, more than a silent body is given
    for (const byte of 'slow') {
      await new Promise((resolve) => setTimeout(resolve, 700));
      client.write(byte);
    }
    expect(await client.until(/"size":4/)).toContain('HTTP/1.1 200');
    client.end();
  });

  it('begins the deadline of the answer when the body is there, for both kinds of routes', async () => {
    const short = await startHttpCore({}, { timeoutMs: 1_000 });
    const clients = await Promise.all(
      ['raw', 'echo/x'].map(async (path) => {
        const client = await RawClient.open(short.port);
        client.write(
          `POST /test/${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 10\r\n\r\n`,
        );
        // three times as long as the backend is given
        for (const byte of '{"topK":1}') {
          await new Promise((resolve) => setTimeout(resolve, 300));
          client.write(byte);
        }
        return client;
      }),
    );
    for (const client of clients) {
      expect(await client.until(/\}$/)).toContain('HTTP/1.1 200');
      client.end();
    }
    await short.stop();
  });

  it('answers 408 when a body keeps coming for longer than a request may take', async () => {
    const short = await startHttpCore({ requestTimeoutMs: 2_000 });
    const client = await RawClient.open(short.port);
    client.write(
      `POST /test/raw HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 10000\r\n\r\n`,
    );
    const trickle = setInterval(() => client.write('x'), 100);
    const reply = await client.closed();
    clearInterval(trickle);
    expect(reply).toContain('HTTP/1.1 408');
    expect(reply).toContain('did not arrive in time');
    await short.stop();
  });

  it('answers 408 when the body stalls', async () => {
    const stalled = await RawClient.open(core.port);
    stalled.write(
      `POST /test/raw HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 10\r\n\r\n12345`,
    );
    const reply = await stalled.until(/request_timeout/);
    expect(reply).toContain('HTTP/1.1 408');
    expect(reply.toLowerCase()).toContain('connection: close');
    await stalled.closed();
  });

  it('does not take its own standstill for a silent client', async () => {
    const client = await RawClient.open(core.port);
    client.write(
      `POST /test/raw HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 4\r\n\r\nab`,
    );
    await eventually(() => expect(core.core.inFlight).toBe(1));
    client.write('cd');
    // longer than a body may be silent
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
    expect(await client.until(/"size":4|request_timeout/)).toContain('HTTP/1.1 200');
    client.end();
  });

  it('answers 504 at the deadline and aborts the work', async () => {
    const before = core.seen.aborted.length;
    const started = performance.now();
    const reply = await call('/test/wait/60000', { method: 'POST' });
    expect(reply.status).toBe(504);
    expect(performance.now() - started).toBeLessThan(PROMPT_MS);
    expect(await reply.json()).toMatchObject({ code: 'timeout' });
    expect(core.seen.aborted.length).toBe(before + 1);
  });

  it('aborts the work when the client goes away, and counts it as 499', async () => {
    const before = core.seen.aborted.length;
    const client = await RawClient.open(core.port);
    client.write(
      `POST /test/wait/900 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 0\r\n\r\n`,
    );
    await eventually(() => expect(core.core.inFlight).toBe(1));
    client.end();
    await eventually(() =>
      expect(core.seen.aborted.slice(before)).toEqual(['The client went away before the answer.']),
    );
    const metrics = await (await fetch(`${core.url}/metrics`)).text();
    expect(metrics).toMatch(
      /portico_http_request_duration_seconds_count\{operation="test.wait",status="499"\} 1/,
    );
  });

  it('answers the requests that came before nonsense on the same connection', async () => {
    const client = await RawClient.open(core.port);
    const request = `POST /test/wait/50 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 0\r\n\r\n`;
    client.write(`${request}${request}NONSENSE\r\n\r\n`);
    expect((await client.closed()).match(/\{"waited":50\}/g)).toHaveLength(2);
  });

  it('answers 400 at once when the chunks of a body are malformed', async () => {
    const client = await RawClient.open(core.port);
    client.write(
      `POST /test/raw HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n`,
    );
    const reply = await client.closed();
    expect(reply).toMatch(/^HTTP\/1.1 400 /);
    expect(reply).toContain('"error":');
  });

  it('answers what is no HTTP and a head that is too large as JSON', async () => {
    const garbage = await RawClient.open(core.port);
    garbage.write('NONSENSE\r\n\r\n');
    expect(await garbage.closed()).toMatch(/^HTTP\/1.1 400 .*\r\n[\s\S]*\{"error":/);
    const large = await RawClient.open(core.port);
    large.write(`GET /${'x'.repeat(300_000)} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(await large.closed()).toMatch(/^HTTP\/1.1 431 .*\r\n[\s\S]*\{"error":/);
  });
});

describe('reply headers', () => {
  it("carries helmet's headers and no word about the server", async () => {
    const { headers } = await call('/test/raw');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('strict-transport-security')).toContain('max-age=');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(headers.get('x-powered-by')).toBeNull();
  });

  it('takes a short plain request id from outside and mints its own otherwise', async () => {
    const id = async (sent: string) =>
      (await call('/test/raw', { headers: { 'x-request-id': sent } })).headers.get('x-request-id');
    expect(await id('order-17.a_b')).toBe('order-17.a_b');
    const own = await id('x'.repeat(65));
    expect(own).toMatch(/^[0-9a-f]{12}-[0-9a-z]+$/);
    expect(await id('a b"<script>')).not.toContain('script');
    expect(await id('')).not.toBe(own);
  });
});

describe('a reply that nobody reads', () => {
  it('does not keep its connection and its memory for ever, and one that is read slowly is sent whole', async () => {
    const size = 20_000_000;
    const big = await startHttpCore({ replyIdleTimeoutMs: 2_000 }, { routes: [largeReply(size)] });
    const request = `GET /test/large HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`;
    const [idle, slow] = await Promise.all([RawClient.open(big.port), RawClient.open(big.port)]);
    idle.socket.pause();
    idle.write(request);
    // longer in all than the time without any progress that is allowed
    let received = 0;
    slow.socket.removeAllListeners('data').on('data', (chunk: string) => {
      received += chunk.length;
      slow.socket.pause();
      setTimeout(() => slow.socket.resume(), 10);
    });
    slow.write(request);
    await eventually(() => expect(received).toBeGreaterThan(size));
    await eventually(() => expect(big.core.inFlight).toBe(0));
    idle.end();
    slow.end();
    await big.stop();
  });
});

it('takes the whole address for the path, as clients of a proxy send it', async () => {
  const client = await RawClient.open(core.port);
  client.write(
    `GET http://elsewhere/test/raw/a?b=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`,
  );
  expect(await client.until(/size/)).toContain('{"target":"/a?b=1","size":0}');
  client.end();
});

it('cuts the path of a prefix route the same way where all routes are raw', async () => {
  const route: BoundRoute = {
    kind: 'raw',
    operationId: 'test.below',
    summary: 'Answers its target.',
    methods: ['GET'],
    path: '/below',
    prefix: true,
    reply: z.unknown(),
    handle: async ({ target }) => ({ status: 200, body: JSON.stringify(target) }),
  };
  const raw = await startHttpCore({}, { routes: [route] });
  const target = async (path: string) => (await fetch(`${raw.url}${path}`, { headers: AUTH })).json();
  expect(await target('/test/below/a%2Fb//c?x=1')).toBe('/a%2Fb//c?x=1');
  expect(await target('/test/below?x=1')).toBe('/?x=1');
  expect(await target('/test/below')).toBe('/');
  expect(await target('/test/belowground')).toMatchObject({ code: 'not_found' });
  await raw.stop();
});

it('lets a handler move its own deadline', async () => {
  const route: BoundRoute = {
    kind: 'raw',
    operationId: 'test.patient',
    summary: 'Waits for as long as its path says.',
    methods: ['GET'],
    path: '/patient',
    prefix: true,
    reply: z.unknown(),
    handle: async ({ target }, context) => {
      context.limitTo(Number(target.slice(1)));
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, 1_000);
        context.signal.addEventListener('abort', () => resolve(clearTimeout(timer)));
      });
      return { status: 200, body: '{}' };
    },
  };
  const patient = await startHttpCore({}, { routes: [route], timeoutMs: 400 });
  const [longer, shorter] = await Promise.all(
    [60_000, 100].map((ms) => fetch(`${patient.url}/test/patient/${ms}`, { headers: AUTH })),
  );
  expect([longer?.status, shorter?.status]).toEqual([200, 504]);
  await patient.stop();
});
