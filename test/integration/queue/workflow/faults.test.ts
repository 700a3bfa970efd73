import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@upstash/workflow';
import { amount } from '../../../support/amount.js';
import { backend } from '../../../support/backend.js';
import { eventually } from '../../../support/eventually.js';
import { freePort } from '../../../support/free-port.js';
import { queueNamespace } from '../../../support/queue/queue.js';
import { type SpawnedGateway, spawnGateway } from '../../../support/spawned-gateway.js';
import { TOKENS } from '../../../support/tokens.js';

const RUNS = amount(60, 10_000);
const KILLS = amount(6, 50);
/** Runs that are under way at once at most. */
const AT_ONCE = 200;
/** Results of a run: one, two, three, nap, called, sum. The call's answer and the plans stand beside them. */
const RESULTS = 6;

const namespace = queueNamespace({ leaseMs: 3_000, sweepGraceMs: 3_000, sweepIntervalMs: 1_000 });
let app: ChildProcess;
let gateways: SpawnedGateway[] = [];
let ports: [app: number, gateway: number];

jest.setTimeout(60_000 + RUNS * 500 + KILLS * 30_000);

async function startApp(): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['test/support/queue/workflow-app.mjs'], {
    env: {
      ...process.env,
      APP_PORT: String(ports[0]),
      QSTASH_URL: `http://127.0.0.1:${ports[1]}/queue`,
      QSTASH_TOKEN: TOKENS.queue,
      QSTASH_CURRENT_SIGNING_KEY: TOKENS.currentSigningKey,
      QSTASH_NEXT_SIGNING_KEY: TOKENS.nextSigningKey,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(child.stdout as NodeJS.ReadableStream, 'data');
  child.stdout?.resume();
  return child;
}

/** The first has the port that the application knows, the second only delivers. */
const startGateway = (port: number) => spawnGateway({ http: { port }, queue: namespace.config });

beforeAll(async () => {
  // the SDK writes out every request that failed, which here are many
  jest.spyOn(console, 'error').mockImplementation();
  ports = [await freePort(), await freePort()];
  [app, ...gateways] = [await startApp(), await startGateway(ports[1]), await startGateway(0)];
});
afterAll(async () => {
  app?.kill('SIGKILL');
  await Promise.all(gateways.map((gateway) => gateway.kill()));
  await namespace.remove();
});

/** What is ended, each in its turn, and how it comes back. */
const faults: (() => Promise<void>)[] = [
  async () => {
    await gateways[0]?.kill();
    gateways[0] = await startGateway(ports[1]);
  },
  async () => {
    app.kill('SIGKILL');
    await once(app, 'exit');
    app = await startApp();
  },
  async () => {
    await gateways[1]?.kill();
    gateways[1] = await startGateway(0);
  },
  async () => {
    await backend('rabbitmq').kill();
    await backend('rabbitmq').start();
  },
  async () => {
    await Promise.all(gateways.map((gateway) => gateway.kill()));
    gateways = [await startGateway(ports[1]), await startGateway(0)];
  },
  async () => {
    await backend('postgres').kill();
    await backend('postgres').start();
  },
];

const unfinished = async () => {
  const [row] = await namespace.query<{ runs: number }>(
    'select count(*)::int as runs from $schema.workflow_runs where ended_at is null',
  );
  return row?.runs ?? 0;
};

/** Starts a run under an id of its own, as often as it takes. @returns tries of which nobody knows what became */
async function trigger(client: Client, number: number): Promise<number> {
  for (let unknown = 0; ; unknown++) {
    try {
      await client.trigger({
        url: `http://127.0.0.1:${ports[0]}/workflow`,
        workflowRunId: `run-${number}`,
        body: { number },
        retries: 50,
        retryDelay: '1000',
      });
      return unknown;
    } catch {
      await sleep(200);
    }
  }
}

it('every run ends, with one result a step, whatever is killed', async () => {
  const client = new Client({
    baseUrl: `http://127.0.0.1:${ports[1]}/queue`,
    token: TOKENS.queue,
    retry: false,
  });
  let unknown = 0;
  let triggered = 0;
  const triggers = (async () => {
    for (let number = 0; number < RUNS; number += 20) {
      const some = Array.from({ length: Math.min(20, RUNS - number) }, (_, i) => trigger(client, number + i));
      for (const more of await Promise.all(some)) unknown += more;
      triggered += some.length;
      // the faults come while there is something to lose
      while ((await unfinished().catch(() => AT_ONCE)) >= Math.min(AT_ONCE, Math.ceil(RUNS / 3)))
        await sleep(200);
    }
  })();
  for (let kills = 0; kills < KILLS; kills++) {
    // spread over the runs
    while (triggered < (RUNS * kills) / (KILLS + 1)) await sleep(50);
    await faults[kills % faults.length]?.();
    await sleep(1_000);
  }
  await triggers;
  await eventually(async () => expect(await unfinished()).toBe(0), 120_000 + RUNS * 100);

  type Row = { id: string; state: string; result: Buffer; results: number; steps: number };
  const rows = await namespace.query<Row>(
    `select r.id, r.state, r.result, count(*) filter (where s.kind = 'result')::int as results,
       count(distinct s.step_id) filter (where s.kind = 'result')::int as steps
     from $schema.workflow_runs r join $schema.workflow_steps s on s.run_no = r.no group by r.no`,
  );
  // a trigger whose answer was lost may have come after the end of the run that it started
  expect(new Set(rows.map(({ id }) => id)).size).toBe(RUNS);
  expect(rows.length - RUNS).toBeLessThanOrEqual(unknown);
  const wrong = rows.filter(({ id, state, result, results, steps }) => {
    const number = Number(id.slice(id.lastIndexOf('-') + 1));
    const expected = JSON.stringify({ status: 200, sum: 3 * number + 3 });
    return state !== 'RUN_SUCCESS' || String(result) !== expected || results !== RESULTS || steps !== RESULTS;
  });
  expect(wrong.slice(0, 5).map((row) => ({ ...row, result: String(row.result) }))).toEqual([]);
  expect(await namespace.query('select 1 from $schema.dead_letters')).toEqual([]);
});
