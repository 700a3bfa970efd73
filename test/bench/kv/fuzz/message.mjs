import { text } from './arguments.mjs';

/** @typedef {import('./random.mjs').Random} Random */

/**
 * The bytes of an HTTP request, as they are said: nothing is checked or completed but the length of the body.
 * @param {{ method?: string, target: string, headers?: [string, string][], body?: Buffer, version?: string,
 *   chunked?: number }} parts `target` and headers in Latin-1; `chunked`: most bytes a chunk, 0 for Content-Length
 * @returns {Buffer}
 */
export function message({ method = 'POST', target, headers = [], body, version = '1.1', chunked = 0 }) {
  const lines = [`${method} ${target} HTTP/${version}`, 'Host: 127.0.0.1'];
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  if (body !== undefined && chunked > 0) lines.push('Transfer-Encoding: chunked');
  else if (body !== undefined) lines.push(`Content-Length: ${body.length}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  if (body === undefined) return head;
  return Buffer.concat([head, chunked > 0 ? chunks(body, chunked) : body]);
}

function chunks(body, size) {
  const parts = [];
  for (let at = 0; at < body.length; at += size) {
    const part = body.subarray(at, at + size);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

/**
 * Who asks: most with one of both tokens, in one of the ways to present it.
 * @param {Random} random
 * @param {{ full: string, read: string }} tokens
 * @returns {{ access: 'full' | 'read' | 'none', headers: [string, string][], query: string }}
 */
export function credentials(random, tokens) {
  const access = random.weighted([
    [75, 'full'],
    [20, 'read'],
    [5, 'none'],
  ]);
  if (access === 'none') return { access, ...wrongCredentials(random, tokens) };
  const token = tokens[access];
  return random.weighted([
    [12, { access, headers: [['Authorization', `Bearer ${token}`]], query: '' }],
    [1, { access, headers: [['authorization', `bearer   ${token} `]], query: '' }],
    [1, { access, headers: [['AUTHORIZATION', token]], query: '' }],
    [2, { access, headers: [], query: `_token=${token}` }],
    [1, { access, headers: [['Authorization', 'Bearer wrong']], query: `_token=${token}` }],
  ]);
}

function wrongCredentials(random, { full }) {
  const header = (value) => ({ headers: [['Authorization', value]], query: '' });
  return random.pick([
    { headers: [], query: '' },
    header('Bearer '),
    header('Bearer'),
    header(`Bearer ${full}x`),
    header(`Bearer ${full.slice(0, -1)}`),
    header(`Bearer ${full.toUpperCase()}`),
    header(`Bearer ${'é'.repeat(full.length)}`),
    header(`Basic ${Buffer.from(`x:${full}`).toString('base64')}`),
    header(`Bearer ${full} ${full}`),
    header(`Bearer ${'x'.repeat(5_000)}`),
    { headers: [], query: '_token=' },
    { headers: [], query: `_token=%00${full}` },
    { headers: [], query: '_token=%zz' },
    { headers: [['Authorization', `Bearer ${full}`]], query: '_token=wrong' },
  ]);
}

/**
 * Headers of the contract and some that mean nothing.
 * @param {Random} random
 * @returns {{ headers: [string, string][], base64: boolean, resp2: boolean }}
 */
export function contractHeaders(random) {
  const headers = [];
  const base64 = random.chance(0.4);
  const prefix = random.pick(['Upstash', 'Service', 'upstash', 'SERVICE']);
  if (base64) headers.push([`${prefix}-Encoding`, random.pick(['base64', 'base64', 'BASE64'])]);
  else if (random.chance(0.1))
    headers.push([`${prefix}-Encoding`, random.pick(['utf8', '', 'base64x', 'b'])]);
  const format = random.chance(0.05) ? random.pick(['json', 'resp2', 'RESP2', 'resp3', '']) : undefined;
  if (format !== undefined) headers.push([`${prefix}-Response-Format`, format]);
  if (random.chance(0.3))
    headers.push([`${prefix}-Sync-Token`, random.pick(['', 'x', 'a.b.c', 'y'.repeat(500)])]);
  if (random.chance(0.2))
    headers.push(['Content-Type', random.pick(['application/json', 'text/plain', '', 'a/b;c'])]);
  if (random.chance(0.05)) headers.push(['X-Request-Id', text(random).replace(/[^\x20-\x7e]/g, '?')]);
  if (random.chance(0.05)) headers.push(['Accept', random.pick(['text/event-stream', '*/*', 'x'])]);
  return { headers, base64, format };
}
