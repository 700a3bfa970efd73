import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowContext } from '@upstash/workflow';
import { eventually } from '../../../support/eventually.js';
import { endedRuns, resultOf, workflowsUnderTest } from '../../../support/queue/workflow.js';

/** As `npm start` makes it: webhooks' addresses are made of its UserID. */
const TOKEN = btoa(JSON.stringify({ UserID: 'operator', Password: randomBytes(24).toString('base64url') }));

const { namespace, gateway, site, freshPath } = workflowsUnderTest(
  'waits',
  { maxMessageSize: 65_536, workflow: { maxNotes: 3, maxRunBytes: 2 * 1024 * 1024 } },
  TOKEN,
);

let names = 0;
const freshEvent = () => `event-${++names}-${randomBytes(4).toString('hex')}`;

const post = (path: string, body?: string, headers: Record<string, string> = {}) =>
  fetch(`${gateway.url}/queue${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, ...headers },
    ...(body === undefined ? {} : { body }),
  });

const waiting = (event: string, count = 1) =>
  eventually(async () => {
    const waiters = await site.client.getWaiters({ eventId: event });
    expect(waiters).toHaveLength(count);
    return waiters;
  });

/** A workflow that waits once and tells what came. */
const waiter = (event: string, timeout: '1s' | '1h') => async (context: WorkflowContext<never>) =>
  context.waitForEvent('wait', event, { timeout });

/** A workflow that cannot go on by itself. */
const holding = (event: string) =>
  site.add(freshPath(), async (context) => {
    await context.waitForEvent('hold', event, { timeout: '1h' });
  });

it('wakes a step with the data of its event, and shows who waits', async () => {
  const event = freshEvent();
  const url = site.add(freshPath(), waiter(event, '1h'));
  const before = Math.floor(Date.now() / 1_000);
  const { workflowRunId } = await site.client.trigger({ url });
  const [shown] = await waiting(event);
  expect(shown).toMatchObject({ url, timeoutUrl: url });
  expect(shown?.deadline).toBeGreaterThanOrEqual(before + 3_600);
  expect(JSON.stringify(shown?.headers)).toContain(workflowRunId);
  const told = await site.client.notify({ eventId: event, eventData: { colour: 'green' } });
  expect(told).toEqual([
    expect.objectContaining({ waiter: shown, workflowRunId, messageId: expect.stringMatching(/^msg_/) }),
  ]);
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run)]).toEqual([
    'RUN_SUCCESS',
    { eventData: { colour: 'green' }, timeout: false },
  ]);
  expect(await site.client.getWaiters({ eventId: event })).toEqual([]);
  expect(await site.client.notify({ eventId: event, eventData: 1 })).toEqual([]);
});

it('ends a wait when its time is over', async () => {
  const url = site.add(freshPath(), waiter(freshEvent(), '1s'));
  const started = Date.now();
  const { workflowRunId } = await site.client.trigger({ url });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run)]).toEqual(['RUN_SUCCESS', { timeout: true }]);
  expect(Date.now() - started).toBeGreaterThanOrEqual(1_000);
});

it('wakes a hundred runs that wait for one event, each once', async () => {
  const event = freshEvent();
  const url = site.add(freshPath(), waiter(event, '1h'));
  const runs = await site.client.trigger(Array.from({ length: 100 }, () => ({ url })));
  await waiting(event, 100);
  const told = await site.client.notify({ eventId: event, eventData: 'go' });
  expect(new Set(told.map((one) => (one as unknown as { workflowRunId: string }).workflowRunId))).toEqual(
    new Set(runs.map(({ workflowRunId }) => workflowRunId)),
  );
  for (const { workflowRunId } of runs) {
    const [run] = await endedRuns(namespace, workflowRunId);
    expect(resultOf(run)).toEqual({ eventData: 'go', timeout: false });
  }
  const steps = await namespace.query(
    "select 1 from $schema.workflow_steps s join $schema.workflow_runs r on r.no = s.run_no where r.url = $1 and s.kind = 'result'",
    [url],
  );
  expect(steps).toHaveLength(100);
});

it('an event and the end of the time at the same moment: each wait has one result', async () => {
  const event = freshEvent();
  const url = site.add(freshPath(), waiter(event, '1s'));
  const runs = await site.client.trigger(Array.from({ length: 40 }, () => ({ url })));
  const until = Date.now() + 4_000;
  while (Date.now() < until) {
    await site.client.notify({ eventId: event, eventData: 'late' });
    await sleep(20);
  }
  for (const { workflowRunId } of runs) {
    const [run] = await endedRuns(namespace, workflowRunId);
    expect(run?.state).toBe('RUN_SUCCESS');
  }
  const steps = await namespace.query<{ kind: string }>(
    'select s.kind from $schema.workflow_steps s join $schema.workflow_runs r on r.no = s.run_no where r.url = $1',
    [url],
  );
  expect(steps.filter(({ kind }) => kind === 'result')).toHaveLength(40);
  expect(await namespace.query('select 1 from $schema.workflow_waits where event = $1', [event])).toEqual([]);
}, 60_000);

it('wakes many runs with large data in several transactions: the first need not wait for the last', async () => {
  const event = freshEvent();
  const url = site.add(freshPath(), async (context) => {
    await context.waitForEvent('wait', event, { timeout: '1h' });
  });
  await Promise.all(Array.from({ length: 6 }, () => site.client.trigger({ url })));
  await waiting(event, 6);
  expect(await site.client.notify({ eventId: event, eventData: 'x'.repeat(1_000_000) })).toHaveLength(6);
  const rows = await namespace.query<{ at: Date }>(
    `select distinct s.created_at as at from $schema.workflow_steps s join $schema.workflow_runs r on r.no = s.run_no
      where r.url = $1 and s.kind = 'result'`,
    [url],
  );
  expect(rows).toHaveLength(2);
});

it('branches that wait beside each other get no more data than a run may have', async () => {
  const events = [freshEvent(), freshEvent(), freshEvent()];
  const url = site.add(freshPath(), async (context) => {
    const waits = events.map((event, i) => context.waitForEvent(`wait ${i}`, event, { timeout: '1h' }));
    return (await Promise.all(waits)).map(({ eventData }) => String(eventData).length);
  });
  const { workflowRunId } = await site.client.trigger({ url });
  for (const event of events) await waiting(event);
  const large = 'x'.repeat(700_000);
  // on a busy machine they take longer than a statement may
  const patient = async (path: string, body: string): Promise<Response> => {
    const answer = await post(path, body);
    if (answer.status !== 503) return answer;
    await sleep(1_000);
    return patient(path, body);
  };
  for (const [event, status] of [
    [events[0], 200],
    [events[1], 200],
    [events[2], 412],
  ])
    expect((await patient(`/v2/notify/${workflowRunId}/${event}`, large)).status).toBe(status);
  // nobody else waits, and what does stays as it was
  expect(await (await patient(`/v2/notify/${events[2]}`, large)).json()).toEqual([]);
  await waiting(events[2] as string);
  expect(await (await patient(`/v2/notify/${events[2]}`, 'small')).json()).toHaveLength(1);
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run)]).toEqual(['RUN_SUCCESS', [700_000, 700_000, 5]]);
});

it('keeps events that are meant for one run until it waits for them, oldest first, and no more than it may', async () => {
  const [gate, event] = [freshEvent(), freshEvent()];
  const url = site.add(freshPath(), async (context) => {
    await context.waitForEvent('gate', gate, { timeout: '1h' });
    const first = await context.waitForEvent('first', event, { timeout: '1h' });
    const second = await context.waitForEvent('second', event, { timeout: '1h' });
    return [first.eventData, second.eventData];
  });
  const { workflowRunId } = await site.client.trigger({ url });
  await waiting(gate);
  for (const data of ['one', 'two', 'three'])
    expect(await (await post(`/v2/notify/${workflowRunId}/${event}`, data)).json()).toEqual([]);
  expect((await post(`/v2/notify/${workflowRunId}/${event}`, 'four')).status).toBe(429);
  await site.client.notify({ eventId: gate, eventData: '' });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect(resultOf(run)).toEqual(['one', 'two']);
  expect(await namespace.query('select 1 from $schema.workflow_notes where event = $1', [event])).toEqual([]);
  expect(await (await post(`/v2/notify/${workflowRunId}/${event}`, 'five')).json()).toEqual([]);
  expect(await namespace.query('select 1 from $schema.workflow_notes where event = $1', [event])).toEqual([]);
  expect((await post(`/v2/notify/no-such-run/${event}`, 'x')).status).toBe(404);
});

it('a webhook brings each request to one wait, in their order', async () => {
  let webhookUrl = '';
  const url = site.add(freshPath(), async (context) => {
    const webhook = await context.createWebhook('hook');
    await context.run('tell', () => {
      webhookUrl = webhook.webhookUrl;
    });
    const seen: unknown[] = [];
    for (const name of ['first', 'second']) {
      const { request, timeout } = await context.waitForWebhook(name, webhook, '1h');
      seen.push([
        request?.method,
        request?.url,
        request?.headers.get('x-from'),
        await request?.text(),
        timeout,
      ]);
    }
    return seen;
  });
  const { workflowRunId } = await site.client.trigger({ url });
  await eventually(async () => expect(webhookUrl).toMatch(/\/queue\/v2\/workflows\/hooks\/operator\//));
  const send = (method: string, body: string | undefined, from: string) =>
    fetch(`${webhookUrl}?n=${from}`, {
      method,
      headers: { 'x-from': from },
      ...(body === undefined ? {} : { body }),
    });
  expect((await send('POST', 'hello', '1')).status).toBe(200);
  expect(await (await send('GET', undefined, '2')).json()).toEqual({});
  const [run] = await endedRuns(namespace, workflowRunId);
  expect(resultOf(run)).toEqual([
    ['POST', `${webhookUrl}?n=1`, '1', 'hello', false],
    ['GET', `${webhookUrl}?n=2`, '2', '', false],
  ]);
  // of a run that is over, of none, too large, of another path: refused, and nothing is stored
  expect((await send('POST', 'late', '3')).status).toBe(404);
  expect((await fetch(webhookUrl.replace(workflowRunId, 'no-such-run'))).status).toBe(404);
  expect((await fetch(`${webhookUrl}/more`)).status).toBe(404);
  expect((await fetch(`${gateway.url}/queue/v2/workflows/hooks`)).status).toBe(404);
  expect(await namespace.query('select 1 from $schema.workflow_notes', [])).toEqual([]);
});

it('takes no webhook that is larger than a message', async () => {
  const { workflowRunId } = await site.client.trigger({ url: holding(freshEvent()) });
  const reply = await fetch(`${gateway.url}/queue/v2/workflows/hooks/operator/${workflowRunId}/x`, {
    method: 'POST',
    body: 'x'.repeat(65_537),
  });
  expect(reply.status).toBe(413);
  expect(await namespace.query('select 1 from $schema.workflow_notes', [])).toEqual([]);
});

it('takes no webhook of a run that has ended', async () => {
  const { workflowRunId } = await site.client.trigger({ url: holding(freshEvent()) });
  const hook = () =>
    fetch(`${gateway.url}/queue/v2/workflows/hooks/operator/${workflowRunId}/x`, {
      method: 'POST',
      body: 'x',
    });
  expect((await hook()).status).toBe(200);
  expect(await site.client.cancel(workflowRunId as never)).toEqual({ cancelled: 1 });
  expect((await hook()).status).toBe(404);
  expect(await namespace.query("select 1 from $schema.workflow_notes where event = 'x'")).toEqual([]);
});

it('many calls of webhooks without a token leave room for those with one', async () => {
  const hook = `${gateway.url}/queue/v2/workflows/hooks/operator/no-such-run/x`;
  const calls = Array.from({ length: 600 }, () => fetch(hook, { method: 'POST', body: 'x' }));
  const published = await post(`/v2/publish/${site.addPlain(freshPath(), () => new Response(''))}`, 'y');
  expect(published.status).toBe(200);
  const replies = await Promise.all(calls);
  const refused = replies.filter(({ status }) => status === 429);
  // on a starved machine the time of some is over before their turn comes
  expect(replies.filter(({ status }) => ![404, 429, 504].includes(status))).toEqual([]);
  expect(refused[0]?.headers.get('retry-after')).toBe('1');
});

it('waits in branches beside others, and a wait that is posted twice is one', async () => {
  const [one, two] = [freshEvent(), freshEvent()];
  const url = site.add(freshPath(), async (context) => {
    const [a, b, c] = await Promise.all([
      context.waitForEvent('a', one, { timeout: '1h' }),
      context.waitForEvent('b', two, { timeout: '1s' }),
      context.run('c', () => 'ran'),
    ]);
    return [a.eventData, b.timeout, c];
  });
  const { workflowRunId } = await site.client.trigger({ url });
  await waiting(one);
  const [row] = await namespace.query<{ request: { step: object; timeoutHeaders: object } }>(
    'select request from $schema.workflow_waits where event = $1',
    [one],
  );
  const again = JSON.stringify({ url, timeout: '1h', ...row?.request });
  expect((await post(`/v2/wait/${one}`, again)).status).toBe(200);
  await waiting(one);
  await site.client.notify({ eventId: one, eventData: 'came' });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect(resultOf(run)).toEqual(['came', true, 'ran']);
  // the run has ended: 400 alone tells the SDK so
  expect((await post(`/v2/wait/${one}`, again)).status).toBe(400);
});

it('a workflow notifies another one', async () => {
  const event = freshEvent();
  const waits = await site.client.trigger({ url: site.add(freshPath(), waiter(event, '1h')) });
  await waiting(event);
  const notifies = await site.client.trigger({
    url: site.add(freshPath(), async (context) => {
      const { notifyResponse } = await context.notify('tell', event, { from: 'a step' });
      return notifyResponse.length;
    }),
  });
  expect(resultOf((await endedRuns(namespace, notifies.workflowRunId))[0])).toBe(1);
  expect(resultOf((await endedRuns(namespace, waits.workflowRunId))[0])).toEqual({
    eventData: { from: 'a step' },
    timeout: false,
  });
});

it.each([
  ['no JSON', 'no'],
  ['a list', '[]'],
  ['null', 'null'],
  ['no step', '{"timeoutHeaders":{"Upstash-Workflow-RunId":["x"]}}'],
  ['no run', '{"step":{"stepId":1,"stepName":"s","stepType":"Wait","concurrent":1}}'],
  [
    'a bad timeout',
    '{"timeout":"soon","timeoutHeaders":{"Upstash-Workflow-RunId":["x"]},"step":{"stepId":1,"stepName":"s","stepType":"Wait","concurrent":1}}',
  ],
  [
    'a timeout beyond the limit',
    '{"timeout":"9y","timeoutHeaders":{"Upstash-Workflow-RunId":["x"]},"step":{"stepId":1,"stepName":"s","stepType":"Wait","concurrent":1}}',
  ],
  [
    'headers that are no texts',
    '{"timeoutHeaders":{"Upstash-Workflow-RunId":[{}]},"step":{"stepId":1,"stepName":"s","stepType":"Wait","concurrent":1}}',
  ],
])('refuses a wait with %s by 412, which fails the run with the text', async (_name, body) => {
  const reply = await post('/v2/wait/some-event', body);
  expect(reply.status).toBe(412);
  expect(await reply.json()).toEqual({ error: expect.any(String) });
});

it('ends with the run: what waits of a cancelled one is not woken', async () => {
  const event = freshEvent();
  const { workflowRunId } = await site.client.trigger({ url: holding(event) });
  await waiting(event);
  const cancel = await fetch(`${gateway.url}/queue/v2/workflows/runs/${workflowRunId}?cancel=true`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  expect(cancel.status).toBe(200);
  expect(await site.client.notify({ eventId: event, eventData: 1 })).toEqual([]);
  const timers = await namespace.query(
    'select 1 from $schema.messages m join $schema.workflow_runs r on r.no = m.run_no where r.id = $1 and m.finished_at is null',
    [workflowRunId],
  );
  expect(timers).toEqual([]);
});
