import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { filled, fits, valueAt } from './matching.mjs';

/**
 * One request and what its reply should be. Texts may hold `{ns}`, which no two runs have in common, and what was kept.
 * @typedef {object} Step
 * @property {string} [method] POST without one
 * @property {string} path below the URL
 * @property {unknown} [body] JSON; a text is sent as it is
 * @property {Record<string, string>} [headers] beside the credentials
 * @property {'none' | 'wrong'} [credentials] instead of those that were given
 * @property {number | number[]} [status] 200 without one; of several any will do
 * @property {unknown} [expected] of the body; see matching.mjs. Without one it may be anything
 * @property {number} [withinMs] it is asked again until it is so, for what takes its time
 * @property {Record<string, string>} [keep] names for later steps, each with the place of its value in the reply's body
 *
 * Steps that belong together; the first that differs ends them.
 * @typedef {{name: string, rule: string, steps: Step[]}} Check
 *
 * What is asked of every server of one contract.
 * @typedef {object} Suite
 * @property {'bearer' | 'basic'} credentials
 * @property {string[]} needs options that it cannot do without
 * @property {Step[]} before what has to be known of the server; what it keeps is there for all checks
 * @property {Check[]} checks
 * @property {Step[]} after takes away what is in `{ns}`; whatever they answer
 *
 * @typedef {{url: string, token: string, options: Record<string, string>}} Server
 * @typedef {{name: string, rule: string, isSame: boolean, difference?: string}} Outcome
 */

const requestMs = 30_000;
const pauseMs = 200;
const shownLength = 300;

/** @param {Suite} suite @param {Server} server @returns {Promise<Outcome[]>} */
export async function runChecks(suite, server) {
  const values = { ...server.options, ns: `conform-${randomBytes(5).toString('hex')}` };
  const outcomes = [];
  try {
    const prepared = await difference(suite, suite.before, server, values);
    if (prepared !== undefined) throw new Error(`${server.url} cannot be checked: ${prepared}`);
    for (const { name, rule, steps } of suite.checks) {
      const found = await difference(suite, steps, server, values);
      outcomes.push({ name, rule, isSame: found === undefined, ...(found && { difference: found }) });
    }
  } finally {
    for (const step of suite.after) await answer(suite, step, server, values).catch(() => undefined);
  }
  return outcomes;
}

/** @returns {Promise<string | undefined>} of the first step that differs */
async function difference(suite, steps, server, values) {
  for (const step of steps) {
    const until = performance.now() + (step.withinMs ?? 0);
    for (;;) {
      /** @type {any} */
      const got = await answer(suite, step, server, values).catch((error) => ({ failure: reasonOf(error) }));
      const found = differenceOf(step, got, values);
      if (found === undefined) {
        for (const [name, path] of Object.entries(step.keep ?? {})) values[name] = valueAt(got.body, path);
        break;
      }
      if (performance.now() >= until) return found;
      await sleep(pauseMs);
    }
  }
  return undefined;
}

/** fetch says why only in the cause. */
const reasonOf = ({ message, cause }) => (cause?.code ? `${message} (${cause.code})` : message);

function differenceOf(step, got, values) {
  const { method = 'POST', path, status = 200 } = step;
  const asked = `${method} ${filled(path, values)}`;
  if (got.failure !== undefined) return `${asked}: ${got.failure}`;
  const shown = `${got.status} ${got.text.slice(0, shownLength)}`;
  if (![status].flat().includes(got.status)) return `${asked}: expected ${status}, got ${shown}`;
  if (step.expected === undefined) return undefined;
  const expected = filled(step.expected, values);
  if (fits(expected, got.body)) return undefined;
  return `${asked}: expected ${JSON.stringify(expected).slice(0, shownLength)}, got ${shown}`;
}

/** @returns {Promise<{status: number, text: string, body: any}>} */
async function answer(suite, step, server, values) {
  const body = filled(step.body, values);
  const reply = await fetch(`${server.url}${filled(step.path, values)}`, {
    method: step.method ?? 'POST',
    headers: { ...credentials(suite, step, server), ...filled(step.headers ?? {}, values) },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(requestMs),
  });
  const text = await reply.text();
  return { status: reply.status, text, body: parsed(text) };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** @returns {Record<string, string>} */
function credentials(suite, step, { token }) {
  if (step.credentials === 'none') return {};
  const given = step.credentials === 'wrong' ? 'nobody:wrong-credentials' : token;
  return {
    authorization:
      suite.credentials === 'basic' ? `Basic ${Buffer.from(given).toString('base64')}` : `Bearer ${given}`,
  };
}
