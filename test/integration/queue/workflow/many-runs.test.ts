import { amount } from '../../../support/amount.js';
import { eventually } from '../../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../../support/gateway.js';
import { queueNamespace } from '../../../support/queue/queue.js';
import { TOKENS } from '../../../support/tokens.js';

/** The log and bulk cancellation where there are very many runs: a million in `npm run test:full`. */
const ROWS = amount(100_000, 1_000_000);
const OPEN = ROWS / 10;

const names = queueNamespace();
let gateway: RunningGateway;

/** Runs `i` of a series, `i` ms after its beginning. */
const runs = (series: string, count: number, columns: Record<string, string>) => {
  const all: Record<string, string> = {
    id: `'${series}' || i`,
    created_ms: `${START} + i`,
    url: `'https://app.example/' || (i % 7)`,
    state: `'RUN_SUCCESS'`,
    labels: `'{common}'`,
    caller_ip: `'10.0.0.1'`,
    settings: `'{"delivery":{"headers":{},"maxRetries":3,"timeoutMs":null},"failure":null}'`,
    ended_at: 'now()',
    ...columns,
  };
  return `insert into $schema.workflow_runs (${Object.keys(all).join(', ')})
    select ${Object.values(all).join(', ')} from generate_series(1, ${count}) i`;
};
const START = Date.now() - 10_000_000;

async function call(method: string, query: string): Promise<{ status: number; body: never }> {
  const answer = await fetch(`${gateway.url}/queue/v2/workflows/${query}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });
  return { status: answer.status, body: (await answer.json()) as never };
}

beforeAll(async () => {
  gateway = await startGateway({ queue: names.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200), 60_000);
  // the oldest are the rare ones: a search from the newest on comes to them last
  const rare = { url: `'https://rare.example/x'`, created_ms: `${START} - i`, labels: `'{rare}'` };
  for (const sql of [
    runs('rare', 3, rare),
    runs('bad', 3, { created_ms: `${START} - 10 - i`, state: `'RUN_FAILED'` }),
    runs('due', 3, { ...rare, state: `'RUN_STARTED'`, ended_at: 'null', flow_key: `'key'` }),
    runs('open', OPEN, { state: `'RUN_STARTED'`, ended_at: 'null' }),
    runs('run', ROWS - OPEN, {}),
  ])
    await names.query(sql);
}, 600_000);
afterAll(async () => {
  await gateway?.stop();
  await names.remove();
}, 120_000);

/** Whatever the first pages have not come to. */
async function found(filter: string): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const page: { status: number; body: unknown } = await call('GET', `logs?${filter}&cursor=${cursor}`);
    expect([filter, page.status]).toEqual([filter, 200]);
    const { runs, cursor: next } = page.body as { runs: { workflowRunId: string }[]; cursor?: string };
    ids.push(...runs.map(({ workflowRunId }) => workflowRunId));
    cursor = next;
  }
  return ids.sort();
}

it.each([
  ['workflowRunId=run7', ['run7']],
  [`workflowRuns=run7@${START + 7}`, ['run7']],
  ['workflowUrl=https://rare.example/x', ['due1', 'due2', 'due3', 'rare1', 'rare2', 'rare3']],
  ['label=rare&state=RUN_SUCCESS', ['rare1', 'rare2', 'rare3']],
  ['state=RUN_FAILED', ['bad1', 'bad2', 'bad3']],
  ['state=RUN_STARTED&flowControlKey=key', ['due1', 'due2', 'due3']],
  [`toDate=${START - 11}`, ['bad1', 'bad2', 'bad3']],
  ['callerIp=10.9.9.9', []],
  ['host=rare.example', ['due1', 'due2', 'due3', 'rare1', 'rare2', 'rare3']],
  ['messageId=msg_none', []],
])(
  '%s is found among very many',
  async (filter, expected) => {
    expect(await found(filter)).toEqual(expected);
  },
  120_000,
);

it('the newest page of all, and the one behind it', async () => {
  const first = (await call('GET', 'logs')).body as { runs: { workflowRunId: string }[]; cursor: string };
  const last = ROWS - OPEN;
  expect(first.runs.map(({ workflowRunId }) => workflowRunId)).toEqual(
    Array.from({ length: 10 }, (_, i) => `run${last - i}`),
  );
  const second = (await call('GET', `logs?cursor=${first.cursor}`)).body as typeof first;
  expect(second.runs[0]?.workflowRunId).toBe(`run${last - 10}`);
});

it('few of very many under way are cancelled, and nothing else', async () => {
  expect(await call('DELETE', 'runs?workflowUrl=https://rare.example/')).toEqual({
    status: 200,
    body: { cancelled: 3 },
  });
  expect((await call('DELETE', 'runs?flowControlKey=key')).body).toEqual({ cancelled: 0 });
  expect((await call('DELETE', 'runs?count=5')).body).toEqual({ cancelled: 5 });
  const [row] = await names.query<{ count: number }>(
    'select count(*)::int as count from $schema.workflow_runs where ended_at is null',
  );
  expect(row?.count).toBe(OPEN - 5);
}, 120_000);
