import { WorkflowNonRetryableError } from '@upstash/workflow';
import pg from 'pg';
import { amount } from '../../../support/amount.js';
import { backendAddress } from '../../../support/environment.js';
import { eventually } from '../../../support/eventually.js';
import { freePort } from '../../../support/free-port.js';
import { queueNamespace } from '../../../support/queue/queue.js';
import {
  endedRuns,
  resultOf,
  startWorkflowSite,
  type WorkflowSite,
} from '../../../support/queue/workflow.js';
import { type SpawnedGateway, spawnGateway } from '../../../support/spawned-gateway.js';
import { startRelay } from '../../../support/tcp-relay.js';
import { TOKENS } from '../../../support/tokens.js';

/** `npm run test:full` asks for more. */
const KILLS = amount(3, 30);

jest.setTimeout(120_000 + KILLS * 60_000);

const namespace = queueNamespace({ leaseMs: 3_000, sweepGraceMs: 3_000 });
let port: number;
let gateway: SpawnedGateway;
let site: WorkflowSite;

const start = async () => {
  gateway = await spawnGateway({ http: { port }, queue: namespace.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
};

beforeAll(async () => {
  for (const level of ['error', 'warn'] as const) jest.spyOn(console, level).mockImplementation();
  port = await freePort();
  await start();
  site = await startWorkflowSite(() => gateway.url);
});
afterAll(async () => {
  await gateway?.kill();
  await site?.stop();
  await namespace.remove();
});

let paths = 0;

/** A run that has failed in its second step, which is mended now. */
async function failedRun() {
  const ran: string[] = [];
  let isMended = false;
  const url = site.add(`/resume-${++paths}`, async (context) => {
    const first = await context.run('first', () => {
      ran.push('first');
      return 1;
    });
    return context.run('second', () => {
      ran.push('second');
      if (!isMended) throw new WorkflowNonRetryableError('not yet');
      return first + 1;
    });
  });
  const { workflowRunId } = await site.client.trigger({ url });
  await endedRuns(namespace, workflowRunId);
  const dlqId = await eventually(async () => {
    const { messages } = await site.client.dlq.list({ filter: { workflowRunId } } as never);
    expect(messages).toHaveLength(1);
    return (messages[0] as unknown as { dlqId: string }).dlqId;
  });
  isMended = true;
  return { url, dlqId, ran };
}

const resume = (base: string, dlqId: string) =>
  fetch(`${base}/queue/v2/workflows/dlq/resume/${dlqId}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });

const runsAt = (url: string) =>
  namespace.query<{ id: string }>('select id from $schema.workflow_runs where url = $1 order by no', [url]);

/** The run that was made of the failed one ended well, and is the only one. */
async function wentOnOnce({ url, ran }: { url: string; ran: readonly string[] }) {
  const again = await eventually(async () => {
    const runs = await runsAt(url);
    expect(runs).toHaveLength(2);
    return runs[1]?.id as string;
  });
  const [run] = await endedRuns(namespace, again);
  expect([run?.state, resultOf(run)]).toEqual(['RUN_SUCCESS', 2]);
  expect(await runsAt(url)).toHaveLength(2);
  // a delivery that was under way may be repeated; what was done before is not
  expect(ran.filter((name) => name === 'first')).toHaveLength(1);
}

it('killed when a run was resumed and before the reply: the second call finds none, the run goes on once', async () => {
  const run = await failedRun();
  const relay = await startRelay(port);
  relay.hold();
  const reply = resume(`http://127.0.0.1:${relay.port}`, run.dlqId).catch(() => 'no reply');
  await eventually(async () => expect(await runsAt(run.url)).toHaveLength(2));
  await gateway.kill();
  relay.cut();
  expect(await reply).toBe('no reply');
  await relay.stop();
  await start();
  expect((await resume(gateway.url, run.dlqId)).status).toBe(404);
  await wentOnOnce(run);
});

it('killed before anything of it was stored: the second call resumes it', async () => {
  const run = await failedRun();
  const holder = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
  await holder.connect();
  try {
    await holder.query('begin');
    await holder.query(`select from ${namespace.schema}.dead_letters where id = $1 for update`, [run.dlqId]);
    let reply: ReturnType<typeof resume> | undefined;
    await eventually(async () => {
      // on a busy machine one is answered 503 before it was seen to wait
      reply ??= resume(gateway.url, run.dlqId).finally(() => {
        reply = undefined;
      });
      // by another connection: within a transaction the first look is all that is ever seen
      const waiting = await namespace.query(
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%$schema%'",
      );
      expect(waiting.length).toBeGreaterThan(0);
    });
    const replied = expect(reply).rejects.toThrow('fetch failed');
    await gateway.kill();
    await replied;
    await holder.query('rollback');
  } finally {
    await holder.end();
  }
  await start();
  const status = await eventually(async () => {
    const reply = await resume(gateway.url, run.dlqId);
    // Postgres may still be at the request of the one that was killed
    expect([200, 404]).toContain(reply.status);
    return reply.status;
  });
  expect([200, 404]).toContain(status);
  await wentOnOnce(run);
});

it('killed at any moment', async () => {
  for (let round = 0; round < KILLS; round++) {
    const run = await failedRun();
    const reply = resume(gateway.url, run.dlqId).catch(() => 'no reply');
    await new Promise((resolve) => setTimeout(resolve, (round * 7) % 30));
    await gateway.kill();
    await reply;
    await start();
    await eventually(async () => expect((await resume(gateway.url, run.dlqId)).status).toBe(404));
    await wentOnOnce(run);
  }
});
