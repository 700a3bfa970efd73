import { Client } from '@upstash/workflow';
import { eventually } from '../../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../../support/gateway.js';
import { type QueueNamespace, queueNamespace } from '../../../support/queue/queue.js';
import { TOKENS } from '../../../support/tokens.js';

/** Which runs the log shows: filters, order, pages, and histories that are larger than a page. */
let names: QueueNamespace;
let gateway: RunningGateway;

interface Page {
  readonly runs: { readonly workflowRunId: string; readonly workflowRunCreatedAt: number }[];
  readonly cursor?: string;
}

async function list(query: string): Promise<{ status: number; body: Page }> {
  const answer = await fetch(`${gateway.url}/queue/v2/workflows/${query}`, {
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });
  return { status: answer.status, body: (await answer.json()) as Page };
}

const client = () => new Client({ baseUrl: `${gateway.url}/queue`, token: TOKENS.queue });

async function start(id: string, path: string, headers: Record<string, string> = {}, body = '{}') {
  const url = `http://127.0.0.1:9${path}`;
  const answer = await fetch(`${gateway.url}/queue/v2/publish/${url}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${TOKENS.queue}`,
      'upstash-workflow-init': 'true',
      'upstash-workflow-runid': id,
      'upstash-workflow-url': url,
      'upstash-delay': '1h',
      ...headers,
    },
    body,
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { messageId: string }).messageId;
}

beforeAll(async () => {
  names = queueNamespace();
  gateway = await startGateway({ queue: names.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200), 60_000);
});
afterAll(async () => {
  await gateway?.stop();
  await names.remove();
});

it('every filter, alone and beside others', async () => {
  const flow = { 'upstash-flow-control-key': 'key', 'upstash-flow-control-value': 'parallelism=1' };
  const message = await start('wfr_a', '/a', { 'upstash-label': 'red,blue' });
  await start('wfr_b', '/a', flow);
  await start('wfr_c', '/c');
  await client().cancel('wfr_c');
  await start('wfr_c', '/c');
  const ids = async (query: string) => {
    const { status, body } = await list(`logs?${query}`);
    expect([query, status]).toEqual([query, 200]);
    return body.runs.map(({ workflowRunId }) => workflowRunId);
  };
  const [newest, older] = (await list('logs?workflowRunId=wfr_c')).body.runs;
  const [createdAt, before] = [newest?.workflowRunCreatedAt as number, older?.workflowRunCreatedAt as number];
  expect(createdAt).toBeGreaterThan(before);
  const url = encodeURIComponent('http://127.0.0.1:9/a');
  for (const [query, expected] of [
    ['', ['wfr_c', 'wfr_c', 'wfr_b', 'wfr_a']],
    ['count=1000', ['wfr_c', 'wfr_c', 'wfr_b', 'wfr_a']],
    ['workflowRunId=wfr_b', ['wfr_b']],
    ['workflowRunId=wfr_a&workflowRunId=wfr_b', ['wfr_b', 'wfr_a']],
    ['workflowRunId=wfr', []],
    [`workflowRunId=wfr_c&workflowCreatedAt=${before}`, ['wfr_c']],
    [`workflowRuns=wfr_c@${before},wfr_b@1`, ['wfr_c']],
    [`workflowUrl=${url}`, ['wfr_b', 'wfr_a']],
    [`workflowUrl=${url}&workflowUrl=other`, ['wfr_b', 'wfr_a']],
    ['workflowUrl=http://127.0.0.1:9/', []],
    ['state=RUN_CANCELED', ['wfr_c']],
    ['state=RUN_STARTED', ['wfr_c', 'wfr_b', 'wfr_a']],
    ['state=RUN_STARTED,RUN_CANCELED&path=/c', ['wfr_c', 'wfr_c']],
    ['state=RUN_SUCCESS', []],
    ['label=blue', ['wfr_a']],
    [`label=blue&workflowUrl=${url}&callerIp=127.0.0.1&host=127.0.0.1:9`, ['wfr_a']],
    ['callerIp=10.0.0.1', []],
    ['flowControlKey=key', ['wfr_b']],
    [`messageId=${message}`, ['wfr_a']],
    [`toDate=${before}&state=RUN_CANCELED`, ['wfr_c']],
    [`fromDate=${createdAt}`, ['wfr_c']],
    ['toDate=1', []],
  ] as const)
    expect([query, await ids(query)]).toEqual([query, expected]);
  const { runs } = await client().logs({ filter: { label: ['blue'], state: 'RUN_STARTED' } });
  expect(runs.map(({ workflowRunId }) => workflowRunId)).toEqual(['wfr_a']);
});

it.each([
  ...[
    'workflowId=x',
    'state=STARTED',
    'state=',
    'label=',
    'workflowRunId=',
    'workflowCreatedAt=soon',
    'count=0',
  ],
  ...['count=ten', 'cursor=x', 'workflowRuns=wfr_a', 'fromDate=now', 'groupBy=label', 'messageId='],
])('%s is refused', async (query) => {
  expect(await list(`events?${query}`)).toEqual({ status: 400, body: { error: expect.any(String) } });
});

it('pages of 10 over 35 runs, newest first, each run once, the last page without a cursor', async () => {
  const expected = Array.from({ length: 35 }, (_, i) => `wfr_p${i}`);
  for (const id of expected) await start(id, '/pages');
  const seen: string[] = [];
  const sizes: number[] = [];
  let cursor: string | undefined;
  do {
    const page = await client().logs({
      filter: { workflowUrl: 'http://127.0.0.1:9/pages' },
      count: 10,
      ...(cursor === undefined ? {} : { cursor }),
    });
    seen.push(...page.runs.map(({ workflowRunId }) => workflowRunId));
    sizes.push(page.runs.length);
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect([seen, sizes]).toEqual([expected.toReversed(), [10, 10, 10, 5]]);
});

it('a page ends before it has more than 4 MiB of steps; one run alone is shown whole, its texts unharmed', async () => {
  // characters of four bytes at any place, so that parts are cut within some
  const text = `x${'𝄞"\\'.repeat(250_000)}`;
  for (const id of ['wfr_l1', 'wfr_l2', 'wfr_l3']) await start(id, '/large', {}, text);
  const sizes: number[] = [];
  let cursor: string | undefined;
  do {
    const page = await client().logs({
      filter: { workflowUrl: 'http://127.0.0.1:9/large' },
      ...(cursor === undefined ? {} : { cursor }),
    });
    sizes.push(page.runs.length);
    for (const { steps } of page.runs)
      expect((steps[0]?.steps[0] as { out?: string } | undefined)?.out === text).toBe(true);
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(sizes.reduce((sum, size) => sum + size)).toBe(3);
  expect(sizes.length).toBeGreaterThan(1);
});

it('a run of thousands of steps, short and long ones: each once and in order, in the log and as the SDK fetches it', async () => {
  const steps = 3_000;
  await start('wfr_steps', '/steps');
  await names.query(
    `insert into $schema.workflow_steps (run_no, seq, message_id, kind, step_id, concurrent, name, type, body)
      select no, i, 'msg_' || i, 'result', i, 1, 'step ' || i, 'Run',
        convert_to(json_build_object('stepId', i, 'out', repeat('x', case when i % 500 = 0 then 400000 else i % 10 end))::text, 'utf8')
      from $schema.workflow_runs, generate_series(1, ${steps}) i where id = 'wfr_steps'`,
  );
  await names.query(`update $schema.workflow_runs set next_seq = ${steps + 1} where id = 'wfr_steps'`);
  const length = (i: number) => (i % 500 === 0 ? 400_000 : i % 10);
  const expected = Array.from({ length: steps }, (_, i) => [i + 1, length(i + 1)]);
  const [run] = (await client().logs({ filter: { workflowRunId: 'wfr_steps' } })).runs;
  const shown = (run?.steps ?? []).flatMap(
    (group) => group.steps as unknown as { stepId: number; out?: string }[],
  );
  expect(shown.slice(1, -1).map(({ stepId, out }) => [stepId, out?.length])).toEqual(expected);
  expect(run?.steps.at(-1)?.type).toBe('next');
  const fetched = (await list('runs/wfr_steps')).body as unknown as { messageId: string; body: string }[];
  const told = fetched.slice(1).map(({ body }) => JSON.parse(Buffer.from(body, 'base64').toString()));
  expect(told.map(({ stepId, out }) => [stepId, out.length])).toEqual(expected);
});
