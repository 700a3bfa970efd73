import { message } from './message.mjs';

/**
 * @typedef {import('./random.mjs').Random} Random
 * @typedef {(random: Random, auth: [string, string]) => { wire: Buffer | string, expected: object }} OddForm
 *   `auth` is a complete Authorization header
 */

const PING = Buffer.from('["PING"]');
const PONG = { form: 'one', rows: [{ result: 'PONG' }] };
const bad = (...statuses) => ({ form: 'error', statuses, mayEnd: true });

/** Requests with odd methods, targets and versions, and what is no HTTP at all. @type {OddForm[]} */
export const ODD_REQUEST_LINES = [
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
];
