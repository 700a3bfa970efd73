import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { backendAddress } from '../../../support/environment.js';
import { eventually } from '../../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../../support/gateway.js';
import { watchLoop } from '../../../support/loop-watch.js';
import { type QueueNamespace, queueNamespace } from '../../../support/queue/queue.js';
import { TOKENS } from '../../../support/tokens.js';

/** What no SDK sends, and an application whose answers are none of an SDK. */
let names: QueueNamespace;
let gateway: RunningGateway;
let application: Server;
let url: string;

const STEP = 16 * 1024 * 1024;
/** Far above what one slice takes and far below what the whole took in one go, in ms. */
const STOP_MS = 300;

async function call(method: string, path: string, body?: string | Buffer) {
  const answer = await fetch(`${gateway.url}/queue${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.queue}` },
    ...(body === undefined ? {} : { body }),
  });
  return { status: answer.status, text: await answer.text() };
}

/** The longest stop of the loop while something is done. */
async function stopDuring<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const watch = watchLoop();
  try {
    const result = await work();
    return { result, ms: watch.longestMs() };
  } finally {
    watch.end();
  }
}

const entry = (id: string, headers: Record<string, string>, body: string, destination = `${url}/ok`) => ({
  destination,
  headers: { 'upstash-workflow-runid': id, 'upstash-workflow-url': destination, ...headers },
  body,
});

const batch = (...entries: object[]) => call('POST', '/v2/batch', JSON.stringify(entries));

let runs = 0;

async function start(headers: Record<string, string> = {}, destination = `${url}/ok`): Promise<string> {
  const id = `wfr_hostile_${++runs}`;
  const settings = {
    'upstash-workflow-init': 'true',
    'upstash-feature-set': 'WF_TriggerOnConfig',
    ...headers,
  };
  const { status, text } = await batch(entry(id, settings, 'TOP-SECRET payload', destination));
  expect([status, text]).toEqual([200, expect.anything()]);
  return id;
}

const stepOf = (stepId: number, more: object = {}) =>
  JSON.stringify({ stepId, stepName: 'step', stepType: 'Run', concurrent: 1, out: '1', ...more });

/** @returns the id of the child */
async function invoke(
  parent: string,
  step: object = {},
  child = `wfr_hostile_${++runs}`,
): Promise<{ child: string; status: number }> {
  const envelope = {
    ...{ body: '', headers: {}, workflowRunId: parent },
    step: { stepId: 1, stepName: 'child', stepType: 'Invoke', concurrent: 1, ...step },
  };
  const answer = await fetch(`${gateway.url}/queue/v2/publish/${url}/ok`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${TOKENS.queue}`,
      ...{
        'upstash-workflow-init': 'true',
        'upstash-workflow-invoke': 'true',
        'upstash-workflow-runid': child,
      },
    },
    body: JSON.stringify(envelope),
  });
  await answer.text();
  return { child, status: answer.status };
}

const end = (id: string, result: string | Buffer) =>
  call('DELETE', `/v2/workflows/runs/${id}?cancel=false`, result);

const resultsOf = (id: string) =>
  names.query<{ name: string; type: string }>(
    `select s.name, s.type from $schema.workflow_steps s join $schema.workflow_runs r on r.no = s.run_no
      where r.id = $1 and s.kind = 'result' order by s.seq`,
    [id],
  );

beforeAll(async () => {
  application = createServer((request, response) => {
    request.resume().on('end', () => {
      const isWell = request.url === '/ok';
      response.writeHead(isWell ? 200 : 500).end(isWell ? '{}' : 'no');
    });
  });
  await new Promise<void>((resolve) => application.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(application.address() as AddressInfo).port}`;
  names = queueNamespace({ maxBatchSize: 2 * STEP });
  gateway = await startGateway({ queue: names.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200), 60_000);
});

afterAll(async () => {
  await gateway?.stop();
  application?.closeAllConnections();
  application?.close();
  await names?.remove();
});

it('a name that is cut within a character, or holds half of one, is a name', async () => {
  const id = await start();
  const [cut, half] = [`${'a'.repeat(999)}😀`, '\ud800'];
  const all = await Promise.all([
    batch(entry(id, {}, stepOf(1, { stepName: cut }))),
    batch(entry(id, {}, stepOf(2, { stepName: half, stepType: half }))),
  ]);
  expect(all.map(({ status }) => status)).toEqual([200, 200]);
  const stored = (await resultsOf(id)).map(({ name }) => name).sort();
  expect(stored).toEqual([`${'a'.repeat(999)}\ufffd`, '\ufffd']);
});

it.each([
  ['control characters', Buffer.alloc(STEP, 1)],
  ['quotes', Buffer.alloc(STEP, '"')],
])('a result of %s that its parent has no room for is refused, and the loop goes on', async (_, result) => {
  const parent = await start();
  const { child } = await invoke(parent);
  const { result: answer, ms } = await stopDuring(() => end(child, result));
  expect([answer.status, answer.text]).toEqual([412, expect.stringContaining('workflow.maxStepBytes')]);
  expect(ms).toBeLessThan(STOP_MS);
  expect(await resultsOf(parent)).toEqual([]);
  // as the SDK does with the text of the refusal
  expect((await call('DELETE', `/v2/workflows/runs/${child}`)).status).toBe(200);
  expect(await resultsOf(parent)).toEqual([{ name: 'child', type: 'Invoke' }]);
});

it('a log that has begun is shown whole though the database is busy for a while', async () => {
  const id = `wfr_hostile_${++runs}`;
  const started = await fetch(`${gateway.url}/queue/v2/publish/${url}/ok`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${TOKENS.queue}`,
      'upstash-workflow-init': 'true',
      'upstash-workflow-runid': id,
      'upstash-workflow-url': `${url}/ok`,
    },
    // six times as long when it is shown: more than the connection holds
    body: Buffer.alloc(STEP / 4, 1),
  });
  expect(started.status).toBe(200);
  expect((await end(id, 'the end')).status).toBe(200);
  const busy = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
  await busy.connect();
  try {
    const answer = await eventually(async () => {
      const reply = await fetch(`${gateway.url}/queue/v2/workflows/logs?workflowRunId=${id}`, {
        headers: { authorization: `Bearer ${TOKENS.queue}` },
      });
      expect(reply.status).toBe(200);
      return reply;
    });
    await busy.query('begin');
    await busy.query(`lock table ${names.schema}.workflow_runs in access exclusive mode`);
    const text = answer.text();
    // a statement may take 1.3 s
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    await busy.query('rollback');
    expect(JSON.parse(await text)).toMatchObject({ runs: [{ workflowRunResponse: 'the end' }] });
  } finally {
    await busy.end();
  }
});

it('a result of any length is shown, and the loop goes on', async () => {
  const id = await start();
  const result = Buffer.alloc(STEP / 2, 1);
  expect((await end(id, result)).status).toBe(200);
  const { result: bytes, ms } = await stopDuring(async () => {
    const answer = await eventually(async () => {
      const reply = await fetch(`${gateway.url}/queue/v2/workflows/logs?workflowRunId=${id}`, {
        headers: { authorization: `Bearer ${TOKENS.queue}` },
      });
      // 503 where a busy machine has read it too slowly
      expect(reply.status).toBe(200);
      return reply;
    });
    let size = 0;
    for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) size += piece.length;
    return size;
  });
  expect(bytes).toBeGreaterThan(result.length * 6);
  expect(ms).toBeLessThan(STOP_MS);
});

it('what a wait or an invocation says beside its data is bounded', async () => {
  const id = await start();
  const long = 'x'.repeat(1024 * 1024);
  const step = { stepId: 1, stepName: 'wait', stepType: 'Wait', concurrent: 1, long };
  const wait = { timeoutHeaders: { 'Upstash-Workflow-RunId': [id] }, step };
  expect((await call('POST', '/v2/wait/event', JSON.stringify(wait))).status).toBe(412);
  expect((await invoke(id, { long })).status).toBe(412);
});

it('an entry of a batch has no more headers than a request', async () => {
  const long = { 'upstash-forward-x': 'x'.repeat(256 * 1024) };
  const id = await start();
  const refused = await batch(entry(id, long, stepOf(1)));
  expect([refused.status, refused.text]).toEqual([412, expect.stringContaining('headers of an entry')]);
  const one = { destination: `${url}/ok`, body: 'x' };
  const { status, text } = await batch(one, { ...one, headers: long });
  expect([status, JSON.parse(text)]).toEqual([
    200,
    [{ messageId: expect.any(String), url: `${url}/ok` }, { error: expect.stringContaining('headers') }],
  ]);
});

it('what is not to be seen of a run is not in the call of its failure function nor in its calls', async () => {
  const id = await start(
    {
      'upstash-redact-fields': 'body,header[x-key]',
      'upstash-forward-x-key': 'TOP-SECRET key',
      'upstash-failure-callback': `${url}/failure`,
      'upstash-failure-callback-retries': '0',
      'upstash-delay': '1h',
    },
    `${url}/fails`,
  );
  const called = await batch({
    destination: `${url}/ok`,
    headers: {
      ...{ 'upstash-workflow-runid': id, 'upstash-workflow-calltype': 'toCallback', 'upstash-delay': '1h' },
      ...{ 'upstash-forward-x-key': 'TOP-SECRET key', 'upstash-callback': url },
      'upstash-callback-forward-upstash-workflow-stepid': '1',
    },
    body: 'TOP-SECRET call',
  });
  const [{ messageId }] = JSON.parse(called.text) as [{ messageId: string }];
  const message = await call('GET', `/v2/messages/${messageId}`);
  expect([message.status, message.text]).toEqual([200, expect.not.stringContaining('TOP-SECRET')]);
  await batch(entry(id, { 'upstash-retries': '0' }, stepOf(2), `${url}/fails`));
  const callback = await eventually(async () => {
    const { text } = await call('GET', `/v2/workflows/logs?workflowRunId=${id}`);
    const [run] = (JSON.parse(text) as { runs: { failureFunction?: { messageId: string } }[] }).runs;
    const failure = run?.failureFunction;
    expect(failure).toBeDefined();
    return failure?.messageId;
  });
  const events = await eventually(async () => {
    const { text } = await call('GET', `/v2/events?messageId=${callback}`);
    expect(text).toContain('REDACTED:');
    return text;
  });
  expect(events).not.toContain(Buffer.from('TOP-SECRET').toString('base64').slice(0, 12));
  expect(events).not.toContain('TOP-SECRET');
});

/** Waits until so many statements of the queue wait for locks. */
const waitingForLocks = (count: number) =>
  eventually(async () => {
    const waiting = await names.query(
      `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%$schema%'`,
    );
    expect(waiting).toHaveLength(count);
  });

it('a run that is invoked again while it ends: neither request waits for the other in a circle', async () => {
  const holder = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
  await holder.connect();
  try {
    // where the machine is so slow that a statement's time ends in between, another round tells
    const statuses = await eventually(async () => {
      const parent = await start();
      const { child } = await invoke(parent);
      await holder.query('begin');
      await holder.query(`select from ${names.schema}.workflow_runs where id = $1 for update`, [parent]);
      const again = invoke(parent, { stepId: 2 }, child);
      await waitingForLocks(1);
      const ends = end(child, '{}');
      await waitingForLocks(2);
      await holder.query('rollback');
      const all = [(await again).status, (await ends).status];
      expect(all).not.toContain(503);
      return all;
    });
    expect(statuses).toEqual([412, 200]);
  } finally {
    await holder.end();
  }
});
