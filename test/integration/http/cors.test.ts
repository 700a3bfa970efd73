import { z } from 'zod';
import type { BoundRoute } from '../../../src/http/route.js';
import { startHttpCore, TOKEN } from '../../support/http-instance.js';
import { RawClient } from '../../support/raw-client.js';

const AUTH = { authorization: `Bearer ${TOKEN}` };
const ORIGIN = 'https://app.example';

/** What the public clients send from a browser. */
const NAMES =
  'authorization,content-type,cache-control,upstash-encoding,upstash-response-format,upstash-sync-token,' +
  'upstash-telemetry-platform,upstash-telemetry-retry,upstash-telemetry-runtime,upstash-telemetry-sdk';

const preflight = (origin: string, headers: Record<string, string> = {}) => ({
  method: 'OPTIONS',
  headers: {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': NAMES,
    ...headers,
  },
});

const corsHeaders = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => /^access-control-|^vary$/.test(name)));

/** `POST /test/raw` as a page of `origin` may do it, by the Fetch standard: 3.3.3 CORS check, 4.8 CORS-preflight fetch. */
async function pageCall(url: string, origin: string, headers: Record<string, string>) {
  const names = Object.keys(headers).sort();
  const allowed = await fetch(
    `${url}/test/raw`,
    preflight(origin, { 'access-control-request-headers': names.join(',') }),
  );
  const check = (reply: Response) => {
    const value = reply.headers.get('access-control-allow-origin');
    if (value !== '*' && value !== origin) throw new TypeError('blocked by CORS');
  };
  const list = (reply: Response, name: string) =>
    (reply.headers.get(name) ?? '').split(',').map((each) => each.trim().toLowerCase());
  check(allowed);
  if (!allowed.ok) throw new TypeError('preflight failed');
  if (!list(allowed, 'access-control-allow-methods').includes('post')) throw new TypeError('method');
  const permitted = list(allowed, 'access-control-allow-headers');
  if (!names.every((name) => permitted.includes(name))) throw new TypeError('headers');
  const reply = await fetch(`${url}/test/raw`, { method: 'POST', headers: { ...headers, origin } });
  check(reply);
  return reply;
}

describe('with origins configured', () => {
  let core: Awaited<ReturnType<typeof startHttpCore>>;
  beforeAll(async () => {
    core = await startHttpCore({ cors: { origins: [ORIGIN, 'http://localhost:3000'] } });
  });
  afterAll(() => core.stop());

  it.each([ORIGIN, 'http://localhost:3000'])(
    'lets pages of %s call with the headers of the public clients',
    async (origin) => {
      const headers = Object.fromEntries(NAMES.split(',').map((name) => [name, 'x']));
      const reply = await pageCall(core.url, origin, { ...headers, ...AUTH });
      expect(reply.status).toBe(200);
      expect(reply.headers.get('vary')).toBe('Origin');
      expect(reply.headers.get('cross-origin-resource-policy')).toBe('cross-origin');
      expect(reply.headers.get('access-control-expose-headers')).toMatch(
        /upstash-sync-token, service-sync-token.*x-request-id, retry-after/,
      );
      expect(reply.headers.get('access-control-allow-credentials')).toBeNull();
    },
  );

  it('answers a preflight without a token at every path, with an id and without a body', async () => {
    for (const path of ['/test/echo/x', '/nothing', '/livez']) {
      const reply = await fetch(`${core.url}${path}`, preflight(ORIGIN));
      expect(reply.status).toBe(204);
      expect(corsHeaders(reply.headers)).toEqual({
        'access-control-allow-origin': ORIGIN,
        'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
        'access-control-allow-headers': NAMES,
        'access-control-expose-headers': expect.any(String),
        'access-control-max-age': '7200',
        vary: 'Origin',
      });
      expect(reply.headers.get('content-length')).toBeNull();
      expect(reply.headers.get('x-request-id')).toMatch(/./);
    }
    const metrics = await (await fetch(`${core.url}/metrics`)).text();
    expect(metrics).toMatch(/_count\{operation="http.preflight",status="204"\} \d/);
  });

  it('lets a page read errors', async () => {
    const reply = await fetch(`${core.url}/test/raw`, { headers: { origin: ORIGIN } });
    expect(reply.status).toBe(401);
    expect(reply.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  });

  it.each([
    'https://app.example.evil.example',
    'http://app.example',
    'https://app.example:8443',
    'https://APP.example',
    'null',
    '*',
  ])('treats %s like any other client', async (origin) => {
    const refused = await fetch(`${core.url}/test/raw`, preflight(origin));
    expect(refused.status).toBe(401);
    expect(corsHeaders(refused.headers)).toEqual({ vary: 'Origin' });
    const known = await fetch(`${core.url}/test/raw`, preflight(origin, AUTH));
    expect(known.status).toBe(405);
    await expect(pageCall(core.url, origin, AUTH)).rejects.toThrow('blocked');
  });

  it('takes OPTIONS that is no preflight the usual way', async () => {
    const reply = await fetch(`${core.url}/test/raw`, { method: 'OPTIONS', headers: { origin: ORIGIN } });
    expect(reply.status).toBe(401);
  });

  it('sends no names back that are none', async () => {
    for (const names of ['a b', 'a,,b', `${'x'.repeat(9_000)}`, 'a: b']) {
      const reply = await fetch(
        `${core.url}/test/raw`,
        preflight(ORIGIN, { 'access-control-request-headers': names }),
      );
      expect(reply.status).toBe(204);
      expect(reply.headers.get('access-control-allow-headers')).toBeNull();
    }
  });

  it('answers a preflight of a whole address, and leaves the connection usable', async () => {
    const client = await RawClient.open(core.port);
    const head = `Host: x\r\nOrigin: ${ORIGIN}\r\n`;
    client.write(
      `OPTIONS http://x/test/raw HTTP/1.1\r\n${head}Access-Control-Request-Method: POST\r\nContent-Length: 2\r\n\r\nxy`,
    );
    await client.until(/204 No Content[\s\S]*\r\n\r\n/);
    client.write(`GET /livez HTTP/1.1\r\n${head}\r\n`);
    expect(await client.until(/"ok"/)).toMatch(/204 No Content[\s\S]*200 OK/);
    client.end();
  });
});

it('lets pages of every origin in with *', async () => {
  const core = await startHttpCore({ cors: { origins: ['*'] } });
  const reply = await pageCall(core.url, 'https://anything.example', AUTH);
  expect(reply.status).toBe(200);
  expect(reply.headers.get('access-control-allow-origin')).toBe('*');
  expect(reply.headers.get('vary')).toBeNull();
  expect((await pageCall(core.url, 'null', AUTH)).status).toBe(200);
  await core.stop();
});

it('carries the same headers on a stream', async () => {
  const route: BoundRoute = {
    kind: 'raw',
    operationId: 'test.stream',
    summary: 'Ends at once.',
    methods: ['GET'],
    path: '/stream',
    reply: z.unknown(),
    handle: async () => ({ status: 200, contentType: 'text/event-stream', open: (sink) => sink.end() }),
  };
  const core = await startHttpCore({ cors: { origins: [ORIGIN] } }, { routes: [route] });
  const reply = await fetch(`${core.url}/test/stream`, { headers: { ...AUTH, origin: ORIGIN } });
  expect(reply.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  expect(await reply.text()).toBe('');
  await core.stop();
});

it('says nothing of it by default', async () => {
  const core = await startHttpCore();
  const preflighted = await fetch(`${core.url}/test/raw`, preflight(ORIGIN));
  expect(preflighted.status).toBe(401);
  const reply = await fetch(`${core.url}/test/raw`, { headers: { ...AUTH, origin: ORIGIN } });
  expect([corsHeaders(preflighted.headers), corsHeaders(reply.headers)]).toEqual([{}, {}]);
  expect(reply.headers.get('cross-origin-resource-policy')).toBe('same-origin');
  await core.stop();
});
