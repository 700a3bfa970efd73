import { bytesOf, jsonOf, literal, text } from './arguments.mjs';
import { commandFor } from './commands.mjs';
import { contractHeaders, credentials, message } from './message.mjs';

/**
 * @typedef {import('./random.mjs').Random} Random
 * @typedef {{ table: import('./rules.mjs').KnownCommand[], tokens: { full: string, read: string } }} Context
 *
 * What the reply must be like.
 * @typedef {object} Expected
 * @property {'one' | 'rows' | 'transaction' | 'error' | 'loose'} form
 * @property {number[]} [statuses] only these
 * @property {import('./rules.mjs').Expectation[]} [rows]
 * @property {boolean} [base64]
 * @property {string} [format] value of the response-format header
 * @property {boolean} [head] a HEAD: no body comes
 * @property {boolean} [mayEnd] the connection may be closed without a reply
 * @property {boolean} [any] the reply of Redis to bytes that were mutated: everything that has the form is right
 *
 * @typedef {{ kind: string, wire: Buffer, expected: Expected[], fresh?: boolean }} Request
 *   `expected`: one for each request in `wire`; `fresh`: the connection is used for nothing else
 */

const UNAUTHORIZED = { form: 'error', statuses: [401] };

/** POST of a JSON array. @param {Random} random @param {Context} context @param {string} marker @returns {Request} */
export function single(random, context, marker) {
  const { access, headers, query } = credentials(random, context.tokens);
  const row = commandFor(random, { table: context.table, access, marker });
  const contract = contractHeaders(random);
  const body = Buffer.from(jsonRow(row, random));
  const target = `${random.pick(['/kv', '/kv', '/kv/', '/kv//'])}${query === '' ? '' : `?${query}`}`;
  return complete(
    'single',
    { target, body, access, headers, contract, random },
    { form: 'one', rows: [row.expect] },
  );
}

/** POST of rows, some of them a transaction. @param {Random} random @param {Context} context @param {string} marker @returns {Request} */
export function rows(random, context, marker) {
  const { access, headers, query } = credentials(random, context.tokens);
  const transaction = random.chance(0.4);
  const list = random.list(1 + random.below(random.chance(0.05) ? 200 : 12), () => undefined);
  const commands = list.map((_, i) =>
    commandFor(random, { table: context.table, access, marker: `${marker}:${i}` }),
  );
  // most transactions shall run: a tenth of the commands is refused, so few of many rows would
  const kept = transaction && random.chance(0.8) ? commands.filter(({ expect }) => mayRun(expect)) : commands;
  if (transaction && access === 'full') kept.push(...roundTrip(random, marker));
  if (kept.length === 0) kept.push({ command: ['PING'], expect: { result: 'PONG' } });
  if (!transaction && random.chance(0.05)) kept.push({ command: [], expect: 'error' });
  const contract = contractHeaders(random);
  const body = Buffer.from(`[${kept.map((row) => jsonRow(row, random)).join(random.pick([',', ' ,\n']))}]`);
  const endpoint = transaction ? 'multi-exec' : 'pipeline';
  const target = `/kv${random.pick(['/', '/', '//'])}${endpoint}${random.pick(['', '', '/'])}${query === '' ? '' : `?${query}`}`;
  const expected = { form: transaction ? 'transaction' : 'rows', rows: kept.map(({ expect }) => expect) };
  return complete(endpoint, { target, body, access, headers, contract, random }, expected);
}

/** A value that is written and read within one transaction must be the same. */
function roundTrip(random, marker) {
  if (random.chance(0.5)) return [];
  const key = `trip:${marker}`;
  if (random.chance(0.2)) {
    const digits = random.pick(['9007199254740993', '-9223372036854775808', '9223372036854775807']);
    return [
      { command: ['SET', key, digits, 'EX', '10'], expect: { result: 'OK' } },
      { command: ['INCRBY', key, '0'], expect: { result: Number(digits), digits } },
    ];
  }
  const value = random.chance(0.7) ? text(random) : literal(random);
  const written = bytesOf(value);
  return [
    { command: ['SET', key, value, 'EX', '10'], expect: { result: 'OK' } },
    { command: ['GET', key], expect: { result: written.toString() } },
    { command: ['STRLEN', key], expect: { result: written.length } },
    { command: ['DEL', key], expect: { result: 1 } },
  ];
}

const mayRun = (expect) => expect === 'any' || expect === 'open' || typeof expect === 'object';

function jsonRow({ command }, random) {
  const blank = random.chance(0.05) ? ' \t\r\n' : '';
  return `[${blank}${command.map((value) => jsonOf(value, random)).join(`,${blank}`)}${blank}]`;
}

function complete(kind, { method, target, body, access, headers, contract, random }, expected) {
  const chunked = random.chance(0.1) ? 1 + random.below(500) : 0;
  const wire = message({ method, target, headers: [...headers, ...contract.headers], body, chunked });
  const { base64, format } = contract;
  const full = access === 'none' ? UNAUTHORIZED : { ...expected, base64, format };
  return { kind, wire, expected: [{ ...full, head: method === 'HEAD' }] };
}

const RESERVED = new Set(['pipeline', 'multi-exec', 'subscribe', 'psubscribe', 'monitor']);

/** A command in the path, with a body where the method has one. @param {Random} random @param {Context} context @param {string} marker @returns {Request} */
export function path(random, context, marker) {
  const { access, headers, query } = credentials(random, context.tokens);
  const { command, expect } = commandFor(random, { table: context.table, access, marker });
  const method = random.pick(['GET', 'GET', 'GET', 'POST', 'POST', 'PUT', 'HEAD']);
  const contract = contractHeaders(random);
  const parts = command.map(bytesOf);
  const tail = [];
  if (parts.length > 4 && random.chance(0.3)) tail.push(...parts.splice(parts.length - 2));
  const hasBody = (method === 'POST' || method === 'PUT') && parts.length > 1 && random.chance(0.7);
  // an empty body is no argument
  const body = hasBody && parts.at(-1).length > 0 ? parts.pop() : undefined;
  const segments = parts.map((part) => percent(part, random));
  if (RESERVED.has(segments[0].toLowerCase()))
    segments[0] = `%${bytesOf(command[0])[0].toString(16)}${segments[0].slice(1)}`;
  const parameters = [
    ...(tail.length === 2 ? [`${percent(tail[0], random)}=${percent(tail[1], random)}`] : []),
    ...(query === '' ? [] : [query]),
  ];
  const target = `/kv/${segments.join('/')}${parameters.length === 0 ? '' : `?${parameters.join('&')}`}`;
  return complete(
    'path',
    { method, target, body, access, headers, contract, random },
    { form: 'one', rows: [expect] },
  );
}

const RAW_PIECES =
  `/ // ? ?? & && = == % %% %00 %0d%0a %2F %3F %25 %zz %C3 %C3%A9 %FF + ; # . .. ... a b=c _token _token= ~ ! $ ' ( ) * , :
  @ [ ] { } | \\ ^ "`.split(/\s+/);

/** A path and query of any pieces. @param {Random} random @param {Context} context @returns {Request} */
export function rawPath(random, context) {
  const { access, headers, query } = credentials(random, context.tokens);
  const start = random.pick([
    '/kv/echo/',
    '/kv/mget/',
    '/kv/set/any:1/',
    '/kv/get',
    '/kv/',
    '/kv',
    '/kv/ping?',
    '/kv/exists?',
  ]);
  const pieces = random.list(random.below(8), () => random.pick(RAW_PIECES)).join('');
  const joined = `${start}${pieces}`;
  const target = query === '' ? joined : `${joined}${joined.includes('?') ? '&' : '?'}${query}`;
  const contract = contractHeaders(random);
  const method = random.pick(['GET', 'POST', 'PUT', 'HEAD']);
  // a second token, or a fragment that swallows the first, makes it 401
  const statuses = access === 'none' ? [401, 400, 404] : [200, 400, 401, 404, 405];
  const request = complete(
    'raw path',
    { method, target, access, headers, contract, random },
    { form: 'loose' },
  );
  request.expected[0] = { form: 'loose', statuses, head: method === 'HEAD', mayEnd: true };
  return { ...request, fresh: true };
}

/** Bytes in a path: what must be escaped is, the rest sometimes, in both cases of hex digits. */
function percent(bytes, random) {
  const all = random.chance(0.1);
  let text = '';
  for (const byte of bytes) {
    const plain = /[A-Za-z0-9._~!$'()*,;:@+-]/.test(String.fromCharCode(byte));
    if (plain && !all) text += String.fromCharCode(byte);
    else {
      const hex = byte.toString(16).padStart(2, '0');
      text += `%${random.chance(0.5) ? hex.toUpperCase() : hex}`;
    }
  }
  return text;
}
