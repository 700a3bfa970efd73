import { isUtf8 } from 'node:buffer';

/** @typedef {import('./requests.mjs').Expected} Expected */

/** Statuses that a form may have when nothing narrower is said. */
const STATUSES = { one: [200, 400], rows: [200, 400], transaction: [200, 400], error: [], loose: [200, 400] };

const REFUSAL = /not available over HTTP|^NOPERM |its name holds a NUL/;
const DENIAL = /^NOPERM |not available over HTTP/;

/**
 * What is wrong with a reply; `undefined` when nothing is.
 * @param {Extract<import('./client.mjs').Reply, { kind: 'reply' }>} reply
 * @param {Expected} expected
 * @returns {string | undefined}
 */
export function judge(reply, expected) {
  const { status, headers, body } = reply;
  const statuses = expected.statuses ?? STATUSES[expected.form];
  if (status >= 500) return `status ${status}`;
  if (expected.format !== undefined && isFormatReply(reply)) return undefined;
  // a raw path may carry the header of a format too
  if (expected.form === 'loose' && isOctets(reply) && isFormatReply(reply)) return undefined;
  if (!statuses.includes(status)) return `status ${status} instead of ${statuses.join(' or ')}`;
  const id = headers.get('x-request-id');
  if (id !== undefined && !/^[A-Za-z0-9._-]{1,64}$/.test(id)) return 'a request id that is not plain';
  if (!headers.get('content-type')?.startsWith('application/json')) return 'no JSON by its Content-Type';
  if (status === 200 && !headers.has('upstash-sync-token') && expected.form !== 'loose')
    return 'no sync token';
  if (expected.head) return body.length === 0 ? undefined : 'a body after HEAD';
  if (!isUtf8(body)) return 'not UTF-8';
  let value;
  try {
    value = JSON.parse(body.toString());
  } catch {
    return 'not JSON';
  }
  return judgeValue(status, value, expected) ?? judgeDigits(status, body, expected.rows);
}

/** What JSON.parse would round. */
function judgeDigits(status, body, rows = []) {
  if (status !== 200) return undefined;
  const lost = rows.find(({ digits }) => digits !== undefined && !body.includes(`{"result":${digits}}`));
  return lost === undefined ? undefined : `the integer ${lost.digits} is not there with all its digits`;
}

/** Replies in Redis' own format, and refusals of other formats. */
function isFormatReply(reply) {
  if (isOctets(reply)) return /^[-+:$*]/.test(reply.body.latin1Slice(0, 1)) || reply.body.length === 0;
  return reply.status === 400;
}

function isOctets({ headers }) {
  return headers.get('content-type')?.startsWith('application/octet-stream') === true;
}

function judgeValue(status, value, expected) {
  if (expected.form === 'loose') return status === 200 ? undefined : judgeError(value);
  if (status !== 200 && expected.form !== 'one') {
    if (expected.form === 'rows' && !expected.any) return 'a pipeline that was refused as a whole';
    return judgeError(value) ?? judgeDiscarded(value, expected);
  }
  if (expected.form === 'one') return judgeEntry(value, status, expected.rows?.[0] ?? 'any', expected);
  return judgeRows(value, expected);
}

/** A transaction that did not run: something in it must be to blame. */
function judgeDiscarded({ error }, { form, rows = [], any }) {
  if (form !== 'transaction' || any) return undefined;
  if (rows.every((row) => typeof row === 'object'))
    return `a transaction without a fault was discarded: ${error}`;
  return undefined;
}

function judgeRows(entries, expected) {
  if (!Array.isArray(entries)) return 'no array';
  const { rows, form, any } = expected;
  if (any) return entries.map((entry) => judgeEntry(entry, undefined, 'any', expected)).find(Boolean);
  if (entries.length !== rows.length) return `${entries.length} entries for ${rows.length} rows`;
  if (form === 'transaction' && rows.some((row) => row === 'refused' || row === 'denied'))
    return 'a transaction ran although a command of it may not run';
  for (const [i, row] of rows.entries()) {
    const problem = judgeEntry(entries[i], undefined, row, expected);
    if (problem !== undefined) return `row ${i}: ${problem}`;
  }
  return undefined;
}

/** `status` is that of a single command, whose entry is the whole reply. */
function judgeEntry(entry, status, expectation, { base64 }) {
  const keys = entry === null || typeof entry !== 'object' ? [] : Object.keys(entry);
  if (keys.length !== 1 || !['result', 'error'].includes(keys[0])) return 'neither {result} nor {error}';
  const failed = keys[0] === 'error';
  if (status !== undefined && failed !== (status === 400)) return `status ${status} with {${keys[0]}}`;
  if (failed) return judgeError(entry) ?? judgeFailure(entry.error, expectation);
  if (expectation === 'refused' || expectation === 'denied' || expectation === 'error')
    return `it ran, but must be ${expectation}: ${JSON.stringify(entry.result)?.slice(0, 200)}`;
  const problem = judgeResult(entry.result, base64, true);
  if (problem !== undefined) return problem;
  if (typeof expectation !== 'object') return undefined;
  return judgeText(entry.result, expectation.result, base64);
}

function judgeText(result, wanted, base64) {
  const encoded = base64 && typeof result === 'string' && result !== 'OK';
  const text = encoded ? Buffer.from(result, 'base64').toString() : result;
  return text === wanted
    ? undefined
    : `${JSON.stringify(text)?.slice(0, 200)} instead of ${JSON.stringify(wanted)}`;
}

function judgeError(value) {
  const keys = value === null || typeof value !== 'object' ? [] : Object.keys(value);
  if (typeof value?.error !== 'string' || value.error === '') return 'no error text';
  // what belongs to no database has the plain shape, which says the status too
  return keys.every((key) => key === 'error' || key === 'status') ? undefined : `fields ${keys}`;
}

function judgeFailure(error, expectation) {
  if (expectation === 'refused') return REFUSAL.test(error) ? undefined : `not refused, but: ${error}`;
  if (expectation === 'denied') return DENIAL.test(error) ? undefined : `not denied, but: ${error}`;
  if (expectation === 'open' && DENIAL.test(error)) return `refused without need: ${error}`;
  return typeof expectation === 'object' ? `failed: ${error}` : undefined;
}

/** null, a string, an integer, or an array of them. */
function judgeResult(value, base64, top) {
  if (value === null) return undefined;
  if (typeof value === 'number') return Number.isInteger(value) ? undefined : `the number ${value}`;
  if (typeof value === 'string') {
    if (!base64 || (top && value === 'OK')) return undefined;
    return Buffer.from(value, 'base64').toString('base64') === value
      ? undefined
      : `no base64: ${JSON.stringify(value).slice(0, 100)}`;
  }
  if (!Array.isArray(value)) return `a ${typeof value} as result`;
  return value.map((item) => judgeResult(item, base64, false)).find(Boolean);
}
