import { setTimeout as sleep } from 'node:timers/promises';
import { amount } from '../../../support/amount.js';
import { eventually } from '../../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../../support/gateway.js';
import { queueNamespace } from '../../../support/queue/queue.js';
import {
  endedRuns,
  resultOf,
  startWorkflowSite,
  type WorkflowSite,
} from '../../../support/queue/workflow.js';
import { TOKENS } from '../../../support/tokens.js';

/** Runs of ten branches; `npm run test:full` asks for more. */
const ROUNDS = amount(10, 100);

const namespace = queueNamespace();
let gateways: RunningGateway[] = [];
let site: WorkflowSite;
let asked = 0;

jest.setTimeout(120_000 + ROUNDS * 3_000);

beforeAll(async () => {
  jest.spyOn(console, 'error').mockImplementation();
  gateways = [
    await startGateway({ queue: namespace.config }),
    await startGateway({ queue: namespace.config }),
  ];
  // each request of the application goes to the other one
  site = await startWorkflowSite(() => (gateways[asked++ % 2] as RunningGateway).url);
  for (const { url } of gateways)
    await eventually(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await site?.stop();
  await namespace.remove();
});

it('the same result posted twenty times over two gateways is one step with one delivery', async () => {
  const target = site.addPlain('/twice', () => Response.json({}));
  const runId = `wfr_two-${Date.now()}`;
  const post = async (gateway: RunningGateway, init: boolean, body: unknown) => {
    const reply = await fetch(`${gateway.url}/queue/v2/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKENS.queue}` },
      body: JSON.stringify([
        {
          destination: target,
          headers: {
            'upstash-workflow-init': String(init),
            'upstash-workflow-runid': runId,
            'upstash-workflow-url': target,
          },
          body: JSON.stringify(body),
        },
      ]),
    });
    expect(reply.status).toBe(200);
    const [answer] = (await reply.json()) as { messageId: string; deduplicated?: boolean }[];
    return answer;
  };
  await post(gateways[0] as RunningGateway, true, {});
  const step = { stepId: 1, stepName: 'one', stepType: 'Run', concurrent: 1, out: '"1"' };
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => post(gateways[i % 2] as RunningGateway, false, step)),
  );
  expect(new Set(answers.map((answer) => answer?.messageId)).size).toBe(1);
  expect(answers.filter((answer) => answer?.deduplicated !== true)).toHaveLength(1);
  await eventually(() => expect(site.calls.filter(({ path }) => path === '/twice')).toHaveLength(2));
  const left = await namespace.query(
    `select 1 from $schema.messages m join $schema.workflow_runs r on m.run_no = r.no
      where r.id = $1 and m.finished_at is null`,
    [runId],
  );
  expect(left).toEqual([]);
});

it('ten branches that end at random moments: the next step follows once', async () => {
  const after = new Map<string, number>();
  const names = Array.from({ length: 10 }, (_, i) => `branch-${i}`);
  const url = site.add('/branches', async (context) => {
    const results = await Promise.all(
      names.map((name, i) =>
        context.run(name, async () => {
          await sleep(Math.random() * 40);
          return i;
        }),
      ),
    );
    return context.run('after', () => {
      after.set(context.workflowRunId, (after.get(context.workflowRunId) ?? 0) + 1);
      return results;
    });
  });
  for (let round = 0; round < ROUNDS; round += 10) {
    const runs = await site.client.trigger(Array.from({ length: 10 }, () => ({ url })));
    for (const { workflowRunId } of runs) {
      const [run] = await endedRuns(namespace, workflowRunId);
      expect([run?.state, resultOf(run)]).toEqual(['RUN_SUCCESS', names.map((_, i) => i)]);
      // start, plans, branches, and what follows
      expect([run?.next_seq, after.get(workflowRunId)]).toEqual([1 + 10 + 10 + 1, 1]);
    }
  }
});
