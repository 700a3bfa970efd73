import { gzipSync } from 'node:zlib';
import { message } from './message.mjs';

const PING = Buffer.from('["PING"]');
const PONG = { form: 'one', rows: [{ result: 'PONG' }] };
const bad = (...statuses) => ({ form: 'error', statuses, mayEnd: true });

/** Requests with odd headers, lengths and chunks. @type {import('./odd-request-lines.mjs').OddForm[]} */
export const ODD_HEADERS = [
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
    expected: PONG,
  }),
  (_, auth) => ({
    wire: message({ target: '/kv', headers: [auth, ['Content-Encoding', 'gzip']], body: PING }),
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
