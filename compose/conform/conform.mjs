import { broker } from './checks/broker.mjs';
import { kv } from './checks/kv.mjs';
import { queue } from './checks/queue.mjs';
import { vector } from './checks/vector.mjs';
import { runChecks } from './run-checks.mjs';

/** What every server of a contract is asked, by service. @type {Record<string, import('./run-checks.mjs').Suite>} */
export const suites = { kv, vector, broker, queue };

/** @typedef {{service?: string, url?: string, token?: string, against?: string, token2?: string, topic?: string}} ConformOptions */
/** @typedef {import('./run-checks.mjs').Outcome} Outcome */

/**
 * Checks a server, or two side by side, against a contract.
 * @param {ConformOptions} given
 * @param {(line: string) => void} print
 * @returns {Promise<number>} 0 where all is as it should be
 * @throws {Error} in one sentence for options that do not suffice, or a server that cannot be checked at all
 */
export async function conform(given, print = console.log) {
  const suite = suites[given.service ?? ''];
  if (suite === undefined) throw new Error(`--service takes one of ${Object.keys(suites).join(', ')}`);
  const missing = ['url', 'token', ...suite.needs].find((name) => !given[name]);
  if (missing !== undefined) throw new Error(`conform needs --${missing}`);
  const { against, topic } = given;
  const urls = [given.url ?? '', ...(against === undefined ? [] : [against])];
  const odd = urls.find((url) => !/^https?:\/\//.test(url) || !URL.canParse(url));
  if (odd !== undefined) throw new Error(`${odd} is no URL that begins with http:// or https://`);
  const tokens = [given.token ?? '', given.token2 ?? given.token ?? ''];
  /** @type {Record<string, string>} */
  const options = topic === undefined ? {} : { topic };
  const servers = urls.map((url, i) => ({ url: url.replace(/\/$/, ''), token: tokens[i] ?? '', options }));
  const columns = [];
  for (const server of servers) columns.push(await runChecks(suite, server));
  for (const line of table(servers, columns)) print(line);
  return columns.flat().every(({ isSame }) => isSame) ? 0 : 1;
}

const mark = (/** @type {Outcome | undefined} */ outcome) => (outcome?.isSame ? 'same' : 'DIFFERS');

/**
 * @param {import('./run-checks.mjs').Server[]} servers
 * @param {Outcome[][]} columns
 */
function table(servers, columns) {
  const [first = []] = columns;
  const width = Math.max(...first.map(({ name }) => name.length)) + 2;
  const letters = servers.map((_, i) => 'AB'[i] ?? '');
  const isAlone = servers.length === 1;
  const lines = servers.map(({ url }, i) => `${isAlone ? '' : `${letters[i]}  `}${url}`);
  lines.push('');
  first.forEach(({ name, rule }, row) => {
    const marks = columns.map((column) => mark(column[row]).padEnd(9));
    lines.push(`  ${name.padEnd(width)}${marks.join('')} ${rule}`);
    columns.forEach((column, i) => {
      const found = column[row]?.difference;
      if (found !== undefined) lines.push(`      ${isAlone ? '' : `${letters[i]}: `}${found}`);
    });
  });
  lines.push('');
  columns.forEach((column, i) => {
    const count = column.filter(({ isSame }) => isSame).length;
    lines.push(`${isAlone ? '' : `${letters[i]}: `}${count} of ${column.length} are as the contract says`);
  });
  return lines;
}
