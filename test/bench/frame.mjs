import { drive, Latencies } from './load.mjs';

/**
 * One server of a comparison.
 * @typedef {{ name: string, server: Awaited<ReturnType<typeof import('./server-process.mjs').startServer>>,
 *   request: Buffer, expectedBody: Buffer | ((body: Buffer) => boolean) }} Contender
 */

/**
 * Drives the contenders in turn (A B A B ...), so that what else the machine does meets all of them alike, and prints
 * a table. The first contender is the reference of the ratios.
 * @param {{ title: string, contenders: Contender[], unitsPerRequest?: number, unit?: string, goal?: number }} bench
 * @param {{ rounds: number, seconds: number, connections: number }} load
 */
export async function compare({ title, contenders, unitsPerRequest = 1, unit = 'req', goal }, load) {
  const results = contenders.map(() => ({
    rates: [],
    latencies: new Latencies(),
    cpu: 0,
    requests: 0,
    wrong: 0,
  }));
  for (const { server, request, expectedBody } of contenders)
    await drive({ ...load, port: server.port, request, expectedBody, seconds: Math.min(2, load.seconds) });
  for (let round = 0; round < load.rounds; round++) {
    for (const [i, { server, request, expectedBody }] of contenders.entries()) {
      const cpuBefore = server.cpuSeconds();
      const run = await drive({ ...load, port: server.port, request, expectedBody });
      const result = results[i];
      result.cpu += server.cpuSeconds() - cpuBefore;
      result.rates.push((run.requests * unitsPerRequest) / run.seconds);
      result.latencies.merge(run.latencies);
      result.requests += run.requests;
      result.wrong += run.wrong;
    }
  }
  const rows = contenders.map(({ name, server }, i) => rowOf(name, server, results[i], results[0], unit));
  console.log(`\n${title} — ${load.rounds} rounds of ${load.seconds} s, ${load.connections} connections`);
  printTable(rows);
  return verdict(results, goal);
}

function rowOf(name, server, result, reference, unit) {
  const ratios = result.rates.map((rate, i) => rate / reference.rates[i]);
  return {
    server: name,
    [`${unit}/s`]: spread(result.rates, (rate) => String(Math.round(rate))),
    ratio: result === reference ? '1' : spread(ratios, (ratio) => ratio.toFixed(2)),
    'p50 ms': result.latencies.quantile(0.5).toFixed(2),
    'p99 ms': result.latencies.quantile(0.99).toFixed(2),
    'CPU µs/req': ((result.cpu * 1e6) / result.requests).toFixed(1),
    'RSS MB': server.rssMegabytes().toFixed(0),
    wrong: String(result.wrong),
  };
}

/** `median (min..max)` */
function spread(values, format) {
  const sorted = [...values].sort((a, b) => a - b);
  return `${format(median(sorted))} (${format(sorted[0])}..${format(sorted.at(-1))})`;
}

function median(sorted) {
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function printTable(rows) {
  const columns = Object.keys(rows[0]);
  const widths = columns.map((column) => Math.max(column.length, ...rows.map((row) => row[column].length)));
  const line = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  console.log(line(columns));
  console.log(`|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`);
  for (const row of rows) console.log(line(columns.map((column) => row[column])));
}

/** Whether no reply was wrong and, where there is a goal, the last contender's median ratio reaches it. */
function verdict(results, goal) {
  const wrong = results.some((result) => result.wrong > 0);
  const last = results.at(-1);
  const ratio = median(last.rates.map((rate, i) => rate / results[0].rates[i]).sort((a, b) => a - b));
  if (goal !== undefined)
    console.log(
      `goal: at least ${goal} of the reference; ${ratio >= goal ? 'reached' : 'MISSED'} (${ratio.toFixed(2)})`,
    );
  if (wrong) console.log('there were WRONG replies');
  return !wrong;
}
