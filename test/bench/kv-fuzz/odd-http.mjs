import { gzipSync } from 'node:zlib';
import { message } from './message.mjs';
import { path, rows, single } from './requests.mjs';

/**
 * @typedef {import('./random.mjs').Random} Random
 * @typedef {import('./requests.mjs').Context} Context
 * @typedef {import('./requests.mjs').Request} Request
 */

const PING = Buffer.from('["PING"]');
const PONG = { form: 'one', rows: [{ result: 'PONG' }] };
const bad = (...statuses) => ({ form: 'error', statuses, mayEnd: true });

/**
 * Requests that are odd as HTTP, each with what must come of it; `auth` is a complete Authorization header.
 * @type {((random: Random, auth: [string, string]) => { wire: Buffer | string, expected: object })[]}
 */
const FORMS = [
  (r, auth) => ({
    wire: message({
      method: r.pick(['DELETE', 'PATCH', 'OPTIONS', 'PROPFIND', 'TRACE', 'REPORT']),
      target: '/kv/get/a',
      headers: [auth],
    }),
    expected: { form: 'error', statuses: [405] },
  }),
  (r, auth) => ({
    wire: message({
      method: r.pick(['GET', 'PUT', 'DELETE']),
      target: r.pick(['/kv/pipeline', '/kv/multi-exec']),
      headers: [auth],
    }),
    expected: { form: 'error', statuses: [405] },
  }),
  (r, auth) => ({
    wire: message({
      method: r.pick(['FOO', 'get', 'G\0T', 'GETS', 'CONNECT', '']),
      target: '/kv/get/a',
      headers: [auth],
    }),
    expected: bad(400, 405),
  }),
  (r, auth) => ({
    wire: message({
      method: 'GET',
      target: r.pick(['/KV/ping', '/kvx/ping', '/', '/%6bv/ping', '/livez/x', '/kv%2fping']),
      headers: [auth],
    }),
    expected: { form: 'error', statuses: [400, 404] },
  }),
  (r, auth) => ({
    wire: message({
      method: 'GET',
      target: r.pick([
        '/kv/get/%',
        '/kv/get/%4',
        '/kv/get/%zz',
        '/kv/get/%u1234',
        '/kv/get/a?x=%',
        '/kv/%',
        '/kv/get/%2',
        '/kv/get/%-1',
      ]),
      headers: [auth],
    }),
    expected: { form: 'error', statuses: [400] },
  }),
  (r, auth) => ({
    wire: message({
      method: 'GET',
      target: r.pick([
        '/kv//ping',
        '/kv/',
        '/kv?',
        '/kv/?',
        '/kv//',
        '/kv/ping//',
        '/kv/./ping',
        '/kv/../kv/ping',
      ]),
      headers: [auth],
    }),
    expected: { form: 'error', statuses: [400, 405] },
  }),
  (r, auth) => ({
    wire: message({
      method: 'GET',
      target: r.pick([
        'http://example.com/kv/ping',
        '//kv/ping',
        'http:///kv/ping',
        'kv/ping',
        '*',
        'http://[::1',
        '?x',
      ]),
      headers: [auth],
    }),
    expected: { form: 'loose', statuses: [200, 400, 401, 404, 405], mayEnd: true },
  }),
  (_, auth) => ({
    wire: message({ method: 'GET', target: '/kv/get/a', headers: [auth], body: Buffer.from('x') }),
    expected: { form: 'error', statuses: [400] },
  }),
  (_, auth) => ({
    wire: message({ target: '/kv', headers: [auth], body: PING, version: '1.0' }),
    expected: PONG,
  }),
  (r, auth) => ({
    wire: message({
      target: '/kv',
      headers: [auth],
      body: PING,
      version: r.pick(['0.9', '2.0', '1.2', '9', '', 'x']),
    }),
    expected: { form: 'loose', statuses: [200, 400, 505], mayEnd: true },
  }),
  () => ({ wire: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', expected: bad(400, 505) }),
  (r) => ({
    wire: Buffer.concat([r.bytes(1 + r.below(300)), Buffer.from('\r\n\r\n')]),
    expected: bad(400, 404, 405, 431),
  }),
  (r) => ({
    wire: Buffer.concat([Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]), r.bytes(200)]),
    expected: bad(400),
  }),
  (_, auth) => ({
    wire: `GET /kv/ping HTTP/1.1\r\n${auth.join(': ')}\r\n\r\n`,
    expected: { form: 'loose', statuses: [200, 400] },
  }),
  (_, auth) => ({
    wire: `\r\n\r\nGET /kv/ping HTTP/1.1\r\nHost: a\r\n${auth.join(': ')}\r\n\r\n`,
    expected: PONG,
  }),
  (_, auth) => ({
    wire: `GET /kv/ping HTTP/1.1\nHost: a\n${auth.join(': ')}\n\n`,
    expected: { form: 'loose', statuses: [200, 400], mayEnd: true },
  }),
  (r, auth) => ({
    wire: `GET /kv/ping HTTP/1.1\r\nHost: a\r\n${auth.join(': ')}\r\n${r.pick(['no colon', ': empty', 'a b: c', 'X: a\0b', 'X\0: a', ' folded', 'X: \x01'])}\r\n\r\n`,
    expected: { form: 'loose', statuses: [200, 400], mayEnd: true },
  }),
  (r, auth) => ({
    wire: `POST /kv HTTP/1.1\r\nHost: a\r\n${auth.join(': ')}\r\nContent-Length: ${r.pick(['-1', '+8', '8 8', '0x8', '1e1', 'x', '8,8', '99999999999999999999999'])}\r\n\r\n["PING"]`,
    expected: { ...bad(400, 413), form: 'loose' },
  }),
  (_, auth) => ({
    wire: `POST /kv HTTP/1.1\r\nHost: a\r\n${auth.join(': ')}\r\nContent-Length: 8\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n["PING"]`,
    expected: bad(400),
  }),
  (_, auth) => ({
    wire: `POST /kv HTTP/1.1\r\nHost: a\r\n${auth.join(': ')}\r\nContent-Length: 8\r\nContent-Length: 9\r\n\r\n["PING"]`,
    expected: bad(400),
  }),
  (r, auth) => ({
    wire: `POST /kv HTTP/1.1\r\nHost: a\r\n${auth.join(': ')}\r\nTransfer-Encoding: ${r.pick(['gzip', 'chunked, gzip', 'identity', 'xchunked'])}\r\n\r\n8\r\n["PING"]\r\n0\r\n\r\n`,
    expected: { ...bad(400), form: 'loose' },
  }),
  (r, auth) => ({
    wire: `POST /kv HTTP/1.1\r\nHost: a\r\n${auth.join(': ')}\r\nTransfer-Encoding: chunked\r\n\r\n${r.pick(['zz\r\n', '-1\r\n', '8\r\n["PING"]XX', 'ffffffffffffffffff\r\n', ';\r\n', '8 8\r\n["PING"]\r\n0\r\n\r\n'])}`,
    expected: bad(400, 413),
  }),
  (_, auth) => ({
    wire: `POST /kv HTTP/1.1\r\nHost: a\r\n${auth.join(': ')}\r\nTransfer-Encoding: chunked\r\n\r\n4;ext=1\r\n["PI\r\n4\r\nNG"]\r\n0\r\nTrailer: x\r\n\r\n`,
    expected: PONG,
  }),
  (_, auth) => ({
    wire: message({ target: '/kv', headers: [auth, ['Expect', '100-continue']], body: PING }),
    expected: PONG,
  }),
  (_, auth) => ({
    wire: message({ target: '/kv', headers: [auth, ['Expect', 'nonsense']], body: PING }),
    expected: { form: 'loose', statuses: [200, 417] },
  }),
  (_, auth) => ({
    wire: message({
      target: '/kv',
      headers: [auth, ['Connection', 'Upgrade'], ['Upgrade', 'websocket']],
      body: PING,
    }),
    expected: PONG,
  }),
  (_, auth) => ({
    wire: message({ target: '/kv', headers: [auth, ['Content-Encoding', 'gzip']], body: gzipSync(PING) }),
    expected: { form: 'error', statuses: [400] },
  }),
  (r, auth) => ({
    wire: message({
      target: '/kv',
      headers: [auth, ...r.list(r.pick([50, 500, 1_999]), () => ['X-A', 'b'])],
      body: PING,
    }),
    expected: PONG,
  }),
  (_, auth) => ({
    wire: message({ target: '/kv', headers: [auth, ['X-A', 'b'.repeat(300_000)]], body: PING }),
    expected: bad(431),
  }),
  (_, auth) => ({
    wire: message({ method: 'GET', target: `/kv/get/${'a'.repeat(200_000)}`, headers: [auth] }),
    expected: { form: 'one', rows: ['any'] },
  }),
  (_, auth) => ({
    wire: message({ target: '/kv', headers: [auth, auth], body: PING }),
    expected: { form: 'loose', statuses: [200, 401] },
  }),
  (r, auth) => ({
    wire: message({
      target: '/kv',
      headers: [auth, ['X-Request-Id', r.pick(['a b', '<script>', 'x'.repeat(65), 'é', '', '../..'])]],
      body: PING,
    }),
    expected: PONG,
  }),
];

/** @param {Random} random @param {Context} context @returns {Request} */
export function oddHttp(random, { tokens }) {
  const index = random.below(FORMS.length);
  const { wire, expected } = FORMS[index](random, ['Authorization', `Bearer ${tokens.full}`]);
  return { kind: `odd-http ${index}`, wire: Buffer.from(wire), expected: [expected], fresh: true };
}

/** Several requests in one write on one connection: as many replies, in order. @param {Random} random @param {Context} context @param {string} marker @returns {Request} */
export function several(random, context, marker) {
  const requests = random
    .list(2 + random.below(6), () => undefined)
    .map((_, i) => random.pick([single, single, path, rows])(random, context, `${marker}:${i}`));
  return {
    kind: 'several',
    wire: Buffer.concat(requests.map(({ wire }) => wire)),
    expected: requests.flatMap(({ expected }) => expected),
    fresh: true,
  };
}
