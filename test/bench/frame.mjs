import { Latencies } from './latencies.mjs';
import { drive } from './load.mjs';

/**
 * Options of a run: what the command line leaves out, each bench chooses.
 * @typedef {{ rounds: number, seconds?: number, connections?: number, requests?: number, seed?: number, first?: number }} Load
 *
 * One server of a comparison. With `run` it is no server of HTTP: it then does by itself what the others are driven to.
 * @typedef {object} Contender
 * @property {string} name
 * @property {{ port?: number, cpuSeconds: () => number, rssMegabytes: () => number }} server
 * @property {(connection: number) => import('./load.mjs').Session} [session]
 * @property {(load: { connections: number, seconds: number }) => Promise<import('./load.mjs').Run>} [run]
 * @property {Goal} [goal]
 *
 * At least so much of the reference (the first contender, or the one named), or so many units a second.
 * @typedef {{ ratio?: number, of?: string, perSecond?: number }} Goal
 */

/** Time that one bench may drive servers, in s, unless the command line says otherwise. */
const BUDGET_SECONDS = 50;
const WARM_UP_SECONDS = 1.5;

/**
 * Drives the contenders in turn (A B A B ...), so that what else the machine does meets all of them alike, and prints
 * a table. The first contender is the reference of the ratios.
 * @param {{ title: string, contenders: Contender[], connections: number, unitsPerRequest?: number, unit?: string }} bench
 * @param {Load} load
 * @returns {Promise<boolean>} whether no reply was wrong; a missed goal is printed, no failure
 */
export async function compare({ title, contenders, connections, unitsPerRequest = 1, unit = 'req' }, load) {
  const { rounds } = load;
  const seconds = load.seconds ?? Math.max(1, Math.floor(BUDGET_SECONDS / rounds / contenders.length));
  const shape = { connections: load.connections ?? connections, seconds };
  const results = contenders.map(() => ({
    rates: [],
    latencies: new Latencies(),
    cpu: 0,
    requests: 0,
    wrong: 0,
  }));
  for (const [i, contender] of contenders.entries())
    results[i].wrong += (await runOnce(contender, { ...shape, seconds: WARM_UP_SECONDS })).wrong;
  for (let round = 0; round < rounds; round++) {
    for (const [i, contender] of contenders.entries()) {
      const cpuBefore = contender.server.cpuSeconds();
      const run = await runOnce(contender, shape);
      results[i].cpu += contender.server.cpuSeconds() - cpuBefore;
      add(results[i], run, unitsPerRequest);
    }
  }
  console.log(`\n${title} — ${rounds} rounds of ${seconds} s, ${shape.connections} connections`);
  printTable(contenders.map(({ name, server }, i) => rowOf(name, server, results[i], results[0], unit)));
  for (const [i, { name, goal }] of contenders.entries()) {
    if (goal === undefined) continue;
    const reference = goal.of === undefined ? 0 : contenders.findIndex((other) => other.name === goal.of);
    judge(name, goal, results[i].rates, results[reference].rates, contenders[reference].name, unit);
  }
  return noneWrong(results.reduce((sum, { wrong }) => sum + wrong, 0));
}

function runOnce({ run, server, session }, shape) {
  return run === undefined ? drive({ ...shape, port: server.port, session }) : run(shape);
}

function add(result, run, unitsPerRequest) {
  result.rates.push((run.requests * unitsPerRequest) / run.seconds);
  result.latencies.merge(run.latencies);
  result.requests += run.requests;
  result.wrong += run.wrong;
}

function rowOf(name, server, result, reference, unit) {
  return {
    server: name,
    [`${unit}/s`]: spread(result.rates, (rate) => String(Math.round(rate))),
    ratio:
      result === reference ? '1' : spread(ratios(result.rates, reference.rates), (ratio) => ratio.toFixed(2)),
    'p50 ms': result.latencies.quantile(0.5).toFixed(2),
    'p99 ms': result.latencies.quantile(0.99).toFixed(2),
    'CPU µs/req': ((result.cpu * 1e6) / result.requests).toFixed(1),
    'RSS MB': server.rssMegabytes().toFixed(0),
    wrong: String(result.wrong),
  };
}

/** Round by round: the two runs of a round met about the same machine. */
function ratios(rates, reference) {
  return rates.map((rate, i) => rate / reference[i]);
}

/** `median (min..max)` */
function spread(values, format) {
  const sorted = [...values].sort((a, b) => a - b);
  return `${format(median(sorted))} (${format(sorted[0])}..${format(sorted.at(-1))})`;
}

/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param {Record<string, string>[]} rows with the same columns */
export function printTable(rows) {
  const columns = Object.keys(rows[0]);
  const widths = columns.map((column) => Math.max(column.length, ...rows.map((row) => row[column].length)));
  const line = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  console.log(line(columns));
  console.log(`|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`);
  for (const row of rows) console.log(line(columns.map((column) => row[column])));
}

function judge(name, { ratio, perSecond }, rates, reference, referenceName, unit) {
  if (ratio !== undefined) {
    const found = median(ratios(rates, reference));
    printGoal(`${name}: at least ${ratio} of ${referenceName}`, found >= ratio, found.toFixed(2));
  }
  if (perSecond !== undefined) {
    const found = median(rates);
    printGoal(`${name}: at least ${perSecond} ${unit}/s`, found >= perSecond, String(Math.round(found)));
  }
}

/** @param {string} goal @param {boolean} reached @param {string} found */
export function printGoal(goal, reached, found) {
  console.log(`goal: ${goal}; ${reached ? 'reached' : 'MISSED'} (${found})`);
}

/** @param {number} wrong @returns {boolean} */
export function noneWrong(wrong) {
  if (wrong > 0) console.log(`there were ${wrong} WRONG replies`);
  return wrong === 0;
}
