import { randomBytes } from 'node:crypto';
import { EventEmitter, on } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenerIdOf, readProcess, tree } from '../../../compose/processes/process-table.mjs';
import { startServer } from '../server-process.mjs';
import { startQueueGateway } from './gateway.mjs';
import { agent, countOf, publish, startSink } from './traffic.mjs';

/** Which backends must run, by their names in `compose/backends/backends.mjs`. */
export const backends = ['rabbitmq', 'postgres'];

const STEPS = 5;
/** Of one round. */
const RUNS = Number(process.env.BENCH_RUNS ?? 200);
const RATIO_GOAL = 1.5;
const RATE_GOAL = 100;
const IDLE_GOAL_MS = 15;
const SLEEPING = Number(process.env.BENCH_SLEEPING ?? 100_000);
const SLEEPING_GOAL_MB = 5;
const AT_ONCE = 50;
const TICKS = 100;

/**
 * A run of five empty steps against six plain messages, in turns within one run: CPU of gateway, Postgres and RabbitMQ
 * together. The messages go once as fast as they can, which the application keeps runs from, and once at the pace that the
 * runs had. Then what is sustained with the application on the same machine, the time from step to step when nothing else
 * is under way, and what runs that sleep cost the gateway. `BENCH_ONLY` (ratio, idle, sustained, sleeping) chooses one.
 * @param {{ rounds: number, seconds: number }} load
 */
export async function run(given) {
  const { rounds, seconds } = { rounds: 5, seconds: 10, ...given };
  const sink = await startSink();
  const heap = ['--expose-gc', '--import', './test/bench/queue/live-heap.mjs'];
  const lines = new EventEmitter();
  const gateway = await startQueueGateway(heap, (line) => lines.emit('line', line));
  const app = await startApp(gateway);
  try {
    const parts = {
      ratio: () => ratio(gateway, sink, app, rounds),
      idle: () => idle(gateway, app),
      sustained: () => sustained(gateway, app, seconds),
      sleeping: () => sleeping(gateway, app, () => liveHeap(gateway, lines)),
    };
    for (const [name, part] of Object.entries(parts))
      if ((process.env.BENCH_ONLY ?? name) === name) await part();
    return true;
  } finally {
    await app.stop();
    await gateway.stop();
    await sink.stop();
  }
}

async function ratio(gateway, sink, app, rounds) {
  const cpu = meter(gateway);
  const plain = (count) => plainMessages(gateway, sink, count * (STEPS + 1));
  const runs = (count) => workflowRuns(gateway, app, count);
  for (const warm of [plain, runs]) await warm(100);
  const ratios = { at: [], paced: [] };
  for (let round = 0; round < rounds; round++) {
    const ofPlain = await cpu(() => plain(RUNS));
    const ofRuns = await cpu(() => runs(RUNS));
    const ofPaced = await cpu(() => pacedMessages(gateway, sink, RUNS * (STEPS + 1), ofRuns.seconds));
    ratios.at.push(ofRuns.all / ofPlain.all);
    ratios.paced.push(ofRuns.all / ofPaced.all);
    console.log(
      `queue: CPU (gateway + Postgres + RabbitMQ): ${STEPS + 1} plain messages ${shown(ofPlain)} at once, ${shown(ofPaced)} at the pace of the runs; ` +
        `a run of ${STEPS} steps ${shown(ofRuns)}`,
    );
  }
  tellRatio('the messages as fast as they go', ratios.at);
  tellRatio('the messages at its own pace', ratios.paced);
}

/** Of CPU, a run or its messages. */
function shown({ all, gateway, postgres, rabbitmq }) {
  const [sum, ...parts] = [all, gateway, postgres, rabbitmq].map((s) => ((s * 1_000) / RUNS).toFixed(2));
  return `${sum} ms (${parts.join(' + ')})`;
}

function tellRatio(than, ratios) {
  const ratio = median(ratios);
  console.log(
    `queue: a run costs ${ratio.toFixed(2)} times ${than} (${ratios.map((r) => r.toFixed(2)).join(', ')}) ` +
      `(goal ${RATIO_GOAL}: ${ratio <= RATIO_GOAL ? 'reached' : 'MISSED'})`,
  );
}

function startApp(gateway) {
  return startServer({
    args: ['test/bench/queue/workflow-app.mjs'],
    env: {
      STEPS: String(STEPS),
      QSTASH_URL: `http://127.0.0.1:${gateway.port}/queue`,
      QSTASH_TOKEN: gateway.token,
      QSTASH_CURRENT_SIGNING_KEY: gateway.signingKeys[0],
      QSTASH_NEXT_SIGNING_KEY: gateway.signingKeys[1],
    },
    portOf: (line) => Number(/^listening on (\d+)$/.exec(line)?.[1]) || undefined,
  });
}

/** CPU of all processes behind a port, those that have ended with them, in ticks. */
function ticksOf(port) {
  const id = readProcess(listenerIdOf(port));
  return tree(id).reduce((sum, { pid }) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /, '')
      .split(' ');
    // of the process itself, and of children that it has waited for
    return sum + [11, 12, 13, 14].reduce((all, i) => all + Number(fields[i]), 0);
  }, 0);
}

/** @returns {(work: () => Promise<unknown>) => Promise<{ all: number, gateway: number, postgres: number, rabbitmq: number, seconds: number }>} seconds of CPU, and of time */
function meter(gateway) {
  const ports = {
    gateway: gateway.port,
    postgres: Number(new URL(process.env.PORTICO_DATABASE_URL).port),
    rabbitmq: Number(new URL(process.env.PORTICO_RABBITMQ_URL).port),
  };
  const look = () =>
    Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, ticksOf(port) / TICKS]));
  return async (work) => {
    const before = look();
    const started = performance.now();
    await work();
    const seconds = (performance.now() - started) / 1_000;
    const after = look();
    const used = Object.fromEntries(Object.keys(ports).map((name) => [name, after[name] - before[name]]));
    return { ...used, seconds, all: Object.values(used).reduce((a, b) => a + b, 0) };
  };
}

async function inParallel(count, work) {
  let next = 0;
  const one = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, one));
}

async function plainMessages(gateway, sink, count) {
  const before = await countOf(sink);
  await inParallel(count, () => publish(gateway, `http://127.0.0.1:${sink.port}/plain`, { body: '{}' }));
  while ((await countOf(sink)) < before + count) await sleep(10);
}

/** The same at an even pace, over so many seconds: what comes alone shares no statement with others. */
async function pacedMessages(gateway, sink, count, seconds) {
  const before = await countOf(sink);
  const started = performance.now();
  const published = [];
  while (published.length < count) {
    const due = Math.ceil((count * (performance.now() - started)) / (seconds * 1_000));
    while (published.length < Math.min(due, count))
      published.push(publish(gateway, `http://127.0.0.1:${sink.port}/plain`, { body: '{}' }));
    await sleep(1);
  }
  await Promise.all(published);
  while ((await countOf(sink)) < before + count) await sleep(10);
}

const unfinished = async (gateway) =>
  Number(
    (await gateway.query('select count(*) as n from $schema.workflow_runs where ended_at is null'))[0].n,
  );

async function workflowRuns(gateway, app, count) {
  const before = await endedOf(app);
  // the application is asked: a look into Postgres would count as the gateway's
  for (let begun = 0, ended = 0; ended < count; ended = (await endedOf(app)) - before) {
    const more = Math.min(count, ended + AT_ONCE) - begun;
    begun += more;
    await Promise.all(Array.from({ length: more }, () => trigger(gateway, app, 1)));
    await sleep(5);
  }
}

const endedOf = async (app) => Number(await (await fetch(`http://127.0.0.1:${app.port}/ended`)).text());

/** Triggers runs as the SDK's client does. */
function trigger(gateway, app, count, headers = {}) {
  const url = `http://127.0.0.1:${app.port}/steps`;
  const entries = Array.from({ length: count }, () => ({
    destination: url,
    headers: {
      'upstash-workflow-init': 'true',
      'upstash-workflow-runid': `wfr_${randomBytes(12).toString('base64url')}`,
      'upstash-workflow-url': url,
      'upstash-feature-set': 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig',
      'upstash-workflow-sdk-version': '1',
      'upstash-forward-upstash-workflow-sdk-version': '1',
      'upstash-method': 'POST',
      'content-type': 'application/json',
      ...headers,
    },
    body: '{}',
  }));
  const body = JSON.stringify(entries);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        agent,
        port: gateway.port,
        host: '127.0.0.1',
        method: 'POST',
        path: '/queue/v2/batch',
        headers: { authorization: `Bearer ${gateway.token}`, 'content-length': Buffer.byteLength(body) },
      },
      (response) => {
        response.resume();
        response.on('end', () =>
          response.statusCode === 200 ? resolve() : reject(new Error(`trigger: ${response.statusCode}`)),
        );
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** From the store of one result to that of the next: delivery, the application's work, its request. */
async function idle(gateway, app) {
  await gateway.query('truncate $schema.workflow_runs cascade');
  for (let i = 0; i < 20; i++) {
    await trigger(gateway, app, 1);
    while ((await unfinished(gateway)) > 0) await sleep(5);
  }
  const [{ p50, p99 }] = await gateway.query(
    `select percentile_cont(0.5) within group (order by ms) as p50, percentile_cont(0.99) within group (order by ms) as p99
      from (select extract(epoch from created_at - lag(created_at) over (partition by run_no order by seq)) * 1000 as ms
        from $schema.workflow_steps) as gaps where ms is not null`,
  );
  console.log(
    `queue: idle, from step to next step: p50 ${Number(p50).toFixed(1)} ms, p99 ${Number(p99).toFixed(1)} ms ` +
      `(goal p50 under ${IDLE_GOAL_MS} ms: ${p50 < IDLE_GOAL_MS ? 'reached' : 'MISSED'})`,
  );
}

async function sustained(gateway, app, seconds) {
  const started = performance.now();
  const [cpu, ofApp] = [gateway.cpuSeconds(), app.cpuSeconds()];
  let begun = 0;
  for (;;) {
    const elapsed = (performance.now() - started) / 1_000;
    if (elapsed > seconds) break;
    const due = Math.floor(elapsed * RATE_GOAL) - begun;
    if (due > 0) {
      begun += due;
      await trigger(gateway, app, due);
    }
    await sleep(20);
  }
  const left = await unfinished(gateway);
  while ((await unfinished(gateway)) > 0) await sleep(50);
  const total = (performance.now() - started) / 1_000;
  const rate = begun / total;
  console.log(
    `queue: ${begun} runs of ${STEPS} steps in ${seconds} s, ${left} left over at the end, all there after ${total.toFixed(1)} s: ${rate.toFixed(0)}/s; ` +
      `CPU ${(gateway.cpuSeconds() - cpu).toFixed(1)} s, of the application ${(app.cpuSeconds() - ofApp).toFixed(1)} s ` +
      `(goal ${RATE_GOAL}/s with less than a second's runs left over: ${left <= RATE_GOAL ? 'reached' : 'MISSED'})`,
  );
}

/** What the gateway has in use, in MB. */
async function liveHeap({ pid }, lines) {
  process.kill(pid, 'SIGUSR2');
  for await (const [line] of on(lines, 'line')) {
    const [, bytes] = /^live heap (\d+)$/.exec(line) ?? [];
    if (bytes !== undefined) return Number(bytes) / 2 ** 20;
  }
}

async function sleeping(gateway, app, heap) {
  const wait = { 'upstash-delay': '1h' };
  // what the first ones take is the heap's growth, not theirs
  for (let i = 0; i < SLEEPING / 10; i += 500) await trigger(gateway, app, 500, wait);
  await sleep(2_000);
  const before = { live: await heap(), rss: gateway.rssMegabytes() };
  const started = performance.now();
  for (let i = SLEEPING / 10; i < SLEEPING; i += 500) await trigger(gateway, app, 500, wait);
  const seconds = (performance.now() - started) / 1_000;
  await sleep(2_000);
  const more = (await heap()) - before.live;
  console.log(
    `queue: ${SLEEPING} sleeping runs (the last nine tenths begun in ${seconds.toFixed(0)} s): ${more.toFixed(1)} MB more in use than with a tenth of them, ` +
      `RSS ${(gateway.rssMegabytes() - before.rss).toFixed(1)} MB more (goal ${SLEEPING_GOAL_MB} MB in use: ${more < SLEEPING_GOAL_MB ? 'reached' : 'MISSED'})`,
  );
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
