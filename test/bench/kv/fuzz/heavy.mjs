import { message } from './message.mjs';

/**
 * @typedef {import('./random.mjs').Random} Random
 * @typedef {import('./requests.mjs').Context} Context
 * @typedef {import('./requests.mjs').Request} Request
 */

const BODY_LIMIT = 32 * 1024 * 1024;
const ROWS = 100_000;
const MEGABYTE = 1024 * 1024;

const repeated = (row, count) => Buffer.from(`[${`${row},`.repeat(count - 1)}${row}]`);
const all = (expectation, count) => Array.from({ length: count }, () => expectation);

/** Each is made a few times in a run. @type {((random: Random) => { target: string, body: Buffer, expected: object })[]} */
const FORMS = [
  () => ({
    target: '/kv/pipeline',
    body: repeated('["ECHO","many"]', ROWS),
    expected: { form: 'rows', rows: all({ result: 'many' }, ROWS) },
  }),
  () => ({
    target: '/kv/pipeline',
    body: repeated('["MONITOR"]', ROWS),
    expected: { form: 'rows', rows: all('refused', ROWS) },
  }),
  () => ({
    target: '/kv/pipeline',
    body: repeated('["INCRBY","heavy:count",1]', ROWS),
    expected: { form: 'rows', rows: all('any', ROWS) },
  }),
  () => ({
    target: '/kv/pipeline',
    body: repeated('[]', ROWS),
    expected: { form: 'rows', rows: all('error', ROWS) },
  }),
  () => ({
    target: '/kv/multi-exec',
    body: repeated('["ECHO","many"]', ROWS),
    expected: { form: 'transaction', rows: all({ result: 'many' }, ROWS) },
  }),
  () => ({
    target: '/kv/multi-exec',
    body: repeated('["NOPE"]', ROWS),
    expected: { form: 'transaction', rows: ['error'] },
  }),
  (random) => ({
    target: '/kv',
    body: Buffer.from(JSON.stringify([`${random.pick(['GET', 'N', '\0', '🔥'])}`.repeat(MEGABYTE / 4), 'a'])),
    expected: { form: 'one', rows: ['error'] },
  }),
  () => ({
    target: '/kv',
    body: Buffer.from(`["SET","heavy:value","${'x'.repeat(BODY_LIMIT - 100)}"]`),
    expected: { form: 'one', rows: [{ result: 'OK' }] },
  }),
  () => ({
    target: '/kv',
    body: Buffer.from(`["ECHO","${'\\u0000\\"é'.repeat(MEGABYTE)}"]`),
    expected: { form: 'one', rows: ['any'] },
  }),
  () => ({
    target: '/kv/pipeline',
    body: repeated('["GETRANGE","heavy:value",0,1000000]', 300),
    expected: { form: 'rows', rows: all('any', 300) },
  }),
  () => ({
    target: '/kv',
    body: Buffer.from('["GET","heavy:value"]'),
    expected: { form: 'one', rows: ['any'] },
  }),
  () => ({
    target: '/kv',
    body: Buffer.alloc(BODY_LIMIT + 1, ' '),
    expected: { form: 'error', statuses: [413] },
  }),
  () => ({
    target: '/kv',
    // a short value: Redis gathers the whole reply before it sends, and the random keys may hold kilobytes
    body: Buffer.from(`["MGET"${',"heavy:count"'.repeat(300_000)}]`),
    expected: { form: 'one', rows: ['any'] },
  }),
  () => ({
    target: '/kv',
    body: Buffer.from(`["MGET"${',1'.repeat(1_100_000)}]`),
    expected: { form: 'one', rows: ['error'] },
  }),
  () => ({
    target: '/kv',
    body: Buffer.from('["DEL","heavy:value"]'),
    expected: { form: 'one', rows: ['any'] },
  }),
];

export const HEAVY_FORMS = FORMS.length;

/** @param {Random} random @param {Context} context @param {number} index @returns {Request} */
export function heavy(random, { tokens }, index) {
  const { target, body, expected } = FORMS[index % FORMS.length](random);
  const base64 = random.chance(0.5);
  const headers = [['Authorization', `Bearer ${tokens.full}`]];
  if (base64) headers.push(['Upstash-Encoding', 'base64']);
  const chunked = random.chance(0.2) ? 60_000 : 0;
  const wire = message({ target, headers, body, chunked });
  return { kind: `heavy ${index % FORMS.length}`, wire, expected: [{ ...expected, base64 }], fresh: true };
}
