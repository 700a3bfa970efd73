import { eventually } from '../../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../../support/gateway.js';
import { queueNamespace, type Receiver, startReceiver } from '../../../support/queue/queue.js';
import { TOKENS } from '../../../support/tokens.js';

/** What a scrape shows of workflow runs, those among them that nobody will call again. */
const names = queueNamespace();
let gateway: RunningGateway;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  await startNew();
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await names.remove();
});

async function startNew(): Promise<void> {
  gateway = await startGateway({ queue: names.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200), 60_000);
}

async function post(id: string, headers: Record<string, string>, body: object, url = `${receiver.url}/run`) {
  const answer = await fetch(`${gateway.url}/queue/v2/publish/${url}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${TOKENS.queue}`,
      'upstash-workflow-runid': id,
      'upstash-workflow-url': url,
      ...headers,
    },
    body: JSON.stringify(body),
  });
  expect([id, answer.status]).toEqual([id, 200]);
}

const start = (id: string, headers: Record<string, string> = {}) =>
  post(id, { 'upstash-workflow-init': 'true', ...headers }, {});

const metrics = async () =>
  (await (await fetch(`${gateway.url}/metrics`)).text())
    .split('\n')
    .filter((line) => line.startsWith('portico_queue_workflow_'));

it('runs and steps are counted where they happen, those under way and those that are stuck in all of Postgres', async () => {
  await start('wfr_asleep', { 'upstash-delay': '1h' });
  await start('wfr_stuck');
  await start('wfr_parent');
  const step = { stepId: 1, stepName: 'other', stepType: 'Invoke', concurrent: 1 };
  await post(
    'wfr_child',
    { 'upstash-workflow-init': 'true', 'upstash-workflow-invoke': 'true', 'upstash-delay': '1h' },
    { body: '', headers: {}, workflowRunId: 'wfr_parent', workflowUrl: `${receiver.url}/run`, step },
  );
  await start('wfr_gone', { 'upstash-delay': '1h' });
  const cancelled = await fetch(`${gateway.url}/queue/v2/workflows/runs/wfr_gone`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });
  expect(cancelled.status).toBe(200);
  const counted = await metrics();
  for (const line of [
    'portico_queue_workflow_runs_total{state="started"} 5',
    'portico_queue_workflow_runs_total{state="canceled"} 1',
    'portico_queue_workflow_steps_total{kind="init"} 5',
    'portico_queue_workflow_steps_total{kind="invoke"} 1',
  ])
    expect(counted).toContain(line);
  await eventually(async () => {
    const rows = await names.query(
      `select 1 from $schema.messages m join $schema.workflow_runs r on r.no = m.run_no
        where r.id in ('wfr_stuck', 'wfr_parent') and m.finished_at is null`,
    );
    expect(rows).toEqual([]);
  });
  // a gateway counts soon after its start, and then each minute
  await gateway.stop();
  await startNew();
  await eventually(async () => {
    expect(await metrics()).toEqual(
      expect.arrayContaining(['portico_queue_workflow_runs_open 4', 'portico_queue_workflow_runs_stuck 1']),
    );
  }, 60_000);
});
