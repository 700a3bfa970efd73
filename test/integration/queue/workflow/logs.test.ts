import { type CallSettings, WorkflowNonRetryableError, type WorkflowRunLog } from '@upstash/workflow';
import { eventually } from '../../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../../support/gateway.js';
import { queueNamespace } from '../../../support/queue/queue.js';
import { endedRuns, startWorkflowSite, type WorkflowSite } from '../../../support/queue/workflow.js';
import { TOKENS } from '../../../support/tokens.js';

/** What the SDK's `client.logs()` shows of runs in every state. */
const namespace = queueNamespace({ maxRetries: 5 });
let gateway: RunningGateway;
let site: WorkflowSite;
/** Endpoints that answer when the tests are over. */
let release: () => void = () => undefined;
const released = new Promise<void>((resolve) => {
  release = resolve;
});

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  site = await startWorkflowSite(() => gateway.url);
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200), 60_000);
});
afterAll(async () => {
  await site.client.cancel({ all: true });
  release();
  await eventually(() => expect(site.calls.filter(({ status }) => status === undefined)).toEqual([]));
  await gateway?.stop();
  await site?.stop();
  await namespace.remove();
});

let paths = 0;
const freshPath = () => `/logged-${++paths}`;

async function logOf(workflowRunId: string): Promise<WorkflowRunLog> {
  const { runs, cursor } = await site.client.logs({ filter: { workflowRunId } });
  expect([runs.length, cursor]).toEqual([1, undefined]);
  return runs[0] as WorkflowRunLog;
}

/** The log once it is as expected. */
const logged = (id: string, expected: object) =>
  eventually(async () => {
    const log = await logOf(id);
    expect(log).toMatchObject(expected);
    return log;
  });

const groups = (log: WorkflowRunLog) =>
  log.steps.map(({ type, steps }) => [
    type,
    ...steps.map((step) => `${step.stepName ?? ''} ${step.state}`.trim()),
  ]);

const failing = (status: number, text: string) => () =>
  new Response(text, { status, headers: { 'upstash-error-step-name': 'broken' } });

it('a run that goes well: its start, steps, branches and result', async () => {
  const url = site.add(freshPath(), async (context) => {
    await context.run('first', () => ({ a: 1 }));
    await Promise.all([context.run('left', () => 'l'), context.run('right', () => 'r')]);
    await context.sleep('nap', '1s');
    return { all: 'done' };
  });
  const { workflowRunId } = await site.client.trigger({
    url,
    body: { name: 'Ada' },
    label: ['red', 'blue'],
    headers: { 'x-mine': 'yes' },
    retries: 2,
  });
  const log = await logged(workflowRunId, { workflowState: 'RUN_SUCCESS' });
  const step = (fields: object) => ({
    callType: 'step',
    messageId: expect.stringMatching(/^msg_/),
    state: 'STEP_SUCCESS',
    concurrent: 1,
    createdAt: expect.any(Number),
    retries: 2,
    headers: {},
    ...fields,
  });
  expect(log).toEqual({
    workflowRunId,
    workflowUrl: url,
    workflowState: 'RUN_SUCCESS',
    workflowRunCreatedAt: expect.any(Number),
    workflowRunCompletedAt: expect.any(Number),
    workflowRunResponse: '{"all":"done"}',
    label: 'red',
    labels: ['red', 'blue'],
    steps: [
      {
        type: 'sequential',
        steps: [
          step({
            stepName: 'init',
            stepType: 'Initial',
            out: '{"name":"Ada"}',
            headers: expect.objectContaining({
              'Content-Type': ['application/json'],
              'Upstash-Workflow-Sdk-Version': ['1'],
              'X-Mine': ['yes'],
            }),
          }),
        ],
      },
      {
        type: 'sequential',
        steps: [step({ stepId: 1, stepName: 'first', stepType: 'Run', out: '{"a":1}' })],
      },
      {
        type: 'parallel',
        steps: [
          step({ stepId: 2, stepName: 'left', stepType: 'Run', out: '"l"', concurrent: 2 }),
          step({ stepId: 3, stepName: 'right', stepType: 'Run', out: '"r"', concurrent: 2 }),
        ],
      },
      {
        type: 'sequential',
        steps: [step({ stepId: 4, stepName: 'nap', stepType: 'SleepFor', sleepFor: 1 })],
      },
    ],
  });
});

it('a run under way: at its first step, asleep, half done with its branches', async () => {
  const first = site.add(freshPath(), async (context) => {
    await context.run('slow', () => released);
  });
  const asleep = site.add(freshPath(), async (context) => {
    await context.sleep('long', '1d');
  });
  const until = Math.ceil(Date.now() / 1_000) + 86_400;
  const half = site.add(freshPath(), async (context) => {
    await Promise.all([
      context.run('quick', () => 1),
      context.sleepUntil('later', until),
      context.run('slow', () => released),
    ]);
  });
  const [one, two, three] = await site.client.trigger([{ url: first }, { url: asleep }, { url: half }]);
  const running = await logOf(one?.workflowRunId as string);
  expect([running.workflowState, groups(running)]).toEqual([
    'RUN_STARTED',
    [
      ['sequential', 'init STEP_SUCCESS'],
      ['next', 'STEP_PROGRESS'],
    ],
  ]);
  const sleeping = await eventually(async () => {
    const log = await logOf(two?.workflowRunId as string);
    expect(groups(log)).toEqual([
      ['sequential', 'init STEP_SUCCESS'],
      ['sequential', 'long STEP_PROGRESS'],
    ]);
    return log;
  });
  expect(sleeping.steps[1]?.steps[0]).toMatchObject({ stepType: 'SleepFor', sleepFor: 86_400 });
  const parallel = await eventually(async () => {
    const log = await logOf(three?.workflowRunId as string);
    expect(groups(log)).toEqual([
      ['sequential', 'init STEP_SUCCESS'],
      ['parallel', 'quick STEP_SUCCESS', 'later STEP_PROGRESS', 'slow STEP_PROGRESS'],
    ]);
    return log;
  });
  expect(parallel.steps[1]?.steps).toMatchObject([{ out: '1' }, { sleepUntil: until }, {}]);
  await site.client.cancel(three?.workflowRunId as string);
  expect(groups(await logOf(three?.workflowRunId as string)).at(1)).toEqual([
    ...['parallel', 'quick STEP_SUCCESS', 'later STEP_CANCELED', 'slow STEP_CANCELED'],
  ]);
  await site.client.cancel(two?.workflowRunId as string);
  const cancelled = await logOf(two?.workflowRunId as string);
  expect([cancelled.workflowState, groups(cancelled).at(1)]).toEqual([
    'RUN_CANCELED',
    ['sequential', 'long STEP_CANCELED'],
  ]);
});

it('a step that waits for an event, and the same when it came', async () => {
  const url = site.add(freshPath(), async (context) => {
    await context.waitForEvent('for it', 'an event', { timeout: '60s' });
  });
  const before = Date.now();
  const { workflowRunId } = await site.client.trigger({ url });
  const waits = await eventually(async () => {
    const { steps } = await logOf(workflowRunId);
    expect(steps[1]).toMatchObject({ steps: [{ stepName: 'for it' }] });
    return steps[1] as unknown as { type: string; steps: [{ waitTimeoutDeadline: number }] };
  });
  expect(waits).toMatchObject({
    type: 'sequential',
    steps: [
      {
        stepName: 'for it',
        stepType: 'Wait',
        state: 'STEP_PROGRESS',
        waitEventId: 'an event',
        waitTimeout: false,
        waitTimeoutDuration: '60s',
      },
    ],
  });
  const { waitTimeoutDeadline } = waits.steps[0];
  expect(waitTimeoutDeadline).toBeGreaterThanOrEqual(before + 60_000);
  expect(waitTimeoutDeadline).toBeLessThanOrEqual(Date.now() + 60_000);
  await site.client.notify({ eventId: 'an event', eventData: 'came' });
  await endedRuns(namespace, workflowRunId);
  expect((await logOf(workflowRunId)).steps[1]).toMatchObject({
    type: 'sequential',
    steps: [{ stepName: 'for it', stepType: 'Wait', state: 'STEP_SUCCESS', waitTimeout: false }],
  });
});

it('a call: what is asked, what goes wrong, what is answered', async () => {
  let answer: () => Response | Promise<Response> = failing(500, 'not yet');
  const target = site.addPlain(freshPath(), () => answer());
  const url = site.add(freshPath(), async (context) => {
    const { status } = await context.call('ask', {
      url: target,
      method: 'POST',
      body: { tea: true },
      headers: { 'x-for': 'them' },
      retries: 3,
      retryDelay: '3000',
    } as unknown as CallSettings);
    return status;
  });
  const { workflowRunId } = await site.client.trigger({ url, body: 'go' });
  const retrying = await eventually(async () => {
    const log = await logOf(workflowRunId);
    expect(groups(log)).toEqual([
      ['sequential', 'init STEP_SUCCESS'],
      ['sequential', 'ask STEP_RETRY'],
    ]);
    return log.steps[1]?.steps[0];
  });
  answer = () => Response.json({ pot: 1 }, { status: 201 });
  const asked = {
    stepName: 'ask',
    stepType: 'Call',
    callUrl: target,
    callMethod: 'POST',
    callHeaders: { 'X-For': ['them'] },
    callBody: '{"tea":true}',
    retries: 3,
  };
  const error = {
    error: '500 Internal Server Error',
    status: 500,
    body: 'not yet',
    time: expect.any(Number),
  };
  expect(retrying).toMatchObject({ ...asked, callType: 'toCallback', errors: [error] });
  const log = await logged(workflowRunId, { workflowState: 'RUN_SUCCESS', workflowRunResponse: '201' });
  const [step] = log.steps[1]?.steps ?? [];
  expect(step).toMatchObject({
    ...asked,
    state: 'STEP_SUCCESS',
    callType: 'step',
    callResponseStatus: 201,
    callResponseBody: '{"pot":1}',
    callResponseHeaders: { 'Content-Type': ['application/json'] },
  });
  expect(step).not.toHaveProperty('errors');
});

it('a run that fails: the attempts at it, its dead letter, its failure function in every state', async () => {
  let answer: () => Response | Promise<Response> = () => released.then(() => new Response());
  const failure = site.addPlain(freshPath(), () => answer());
  const broken = site.addPlain(freshPath(), failing(500, 'oh no'));
  const start = (runId: string, callback: Record<string, string> = {}) =>
    fetch(`${gateway.url}/queue/v2/publish/${broken}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${TOKENS.queue}`,
        'upstash-workflow-init': 'true',
        'upstash-workflow-runid': runId,
        'upstash-workflow-url': broken,
        'upstash-retries': '1',
        'upstash-retry-delay': '100',
        ...callback,
      },
    });
  const failureCallback = { 'upstash-failure-callback': failure, 'upstash-failure-callback-retries': '0' };
  expect((await start('wfr_inprogress', failureCallback)).status).toBe(200);
  const error = {
    error: '500 Internal Server Error',
    status: 500,
    body: 'oh no',
    headers: expect.objectContaining({ 'Upstash-Error-Step-Name': ['broken'] }),
    time: expect.any(Number),
  };
  const failed = {
    workflowState: 'RUN_FAILED',
    workflowRunCompletedAt: expect.any(Number),
    dlqId: expect.any(String),
    steps: [
      { type: 'sequential' },
      {
        type: 'next',
        steps: [
          { stepName: 'broken', state: 'STEP_FAILED', retries: 1, retryDelay: '100', errors: [error, error] },
        ],
      },
    ],
  };
  const told = { url: failure, failStatus: 500, failResponse: 'oh no', dlqId: expect.any(String) };
  const log = await logged('wfr_inprogress', {
    ...failed,
    failureFunction: { ...told, state: 'CALLBACK_INPROGRESS' },
  });
  expect(log.failureFunction?.dlqId).toBe(log.dlqId);
  answer = () => new Response('thanks', { status: 200, headers: { 'x-said': 'it' } });
  await start('wfr_success', failureCallback);
  await logged('wfr_success', {
    ...failed,
    failureFunction: {
      ...told,
      state: 'CALLBACK_SUCCESS',
      responseStatus: 200,
      responseBody: 'thanks',
      responseHeaders: { 'X-Said': ['it'] },
    },
  });
  answer = () => new Response('not me', { status: 503 });
  await start('wfr_fail', failureCallback);
  await logged('wfr_fail', {
    ...failed,
    failureFunction: {
      ...told,
      state: 'CALLBACK_FAIL',
      responseStatus: 503,
      errors: [{ status: 503, body: 'not me' }],
    },
  });
  await start('wfr_none');
  expect(await logged('wfr_none', failed)).not.toHaveProperty('failureFunction');
});

it('a branch that fails has its errors in its step', async () => {
  const url = site.add(freshPath(), async (context) => {
    await Promise.all([
      context.run('good', () => 1),
      context.run('bad', () => {
        throw new WorkflowNonRetryableError('no way');
      }),
    ]);
  });
  const { workflowRunId } = await site.client.trigger({ url });
  const log = await logged(workflowRunId, { workflowState: 'RUN_FAILED' });
  const [, group] = log.steps;
  expect(group?.type).toBe('parallel');
  expect(group?.steps[1]).toMatchObject({
    stepName: 'bad',
    state: 'STEP_FAILED',
    errors: [{ status: 489, body: expect.stringContaining('no way') }],
  });
});

it('a run that starts another one, and that other one', async () => {
  const child = freshPath();
  const childUrl = site.add(child, (context) => context.run('get', () => `got ${context.requestPayload}`));
  const url = site.add(freshPath(), async (context) => {
    await context.invoke('other', {
      workflow: { workflowId: child.slice(1) },
      body: 'seven',
      headers: { 'x-to': 'child' },
    } as never);
  });
  const { workflowRunId } = await site.client.trigger({ url });
  const log = await logged(workflowRunId, { workflowState: 'RUN_SUCCESS' });
  expect(groups(log)).toEqual([
    ['sequential', 'init STEP_SUCCESS'],
    ['sequential', 'other STEP_SUCCESS'],
  ]);
  const invoked = log.steps[1]?.steps[0] as never as Record<string, string>;
  expect(invoked).toMatchObject({
    stepType: 'Invoke',
    invokedWorkflowUrl: childUrl,
    invokedWorkflowCreatedAt: expect.any(Number),
    invokedWorkflowRunBody: expect.stringContaining('seven'),
    invokedWorkflowRunHeaders: { 'X-To': ['child'] },
  });
  expect(JSON.parse(invoked.out as string)).toMatchObject({ isFailed: false, isCanceled: false });
  const { invoker } = await logOf(invoked.invokedWorkflowRunId as string);
  expect(invoker).toEqual({
    workflowRunId,
    workflowUrl: url,
    workflowRunCreatedAt: log.workflowRunCreatedAt,
  });
});

it('redacted fields are shown as digests', async () => {
  const url = site.add(freshPath(), async (context) => {
    const secret = await context.run('secret', () => 'hush');
    return `${secret} ${secret}`;
  });
  const { workflowRunId } = await site.client.trigger({
    url,
    body: 'whisper',
    headers: { 'x-key': 'k', 'x-open': 'o' },
    redact: { body: true, header: ['x-key'] },
  } as never);
  const log = await logged(workflowRunId, { workflowState: 'RUN_SUCCESS' });
  expect(JSON.stringify(log)).not.toMatch(/hush|whisper/);
  expect(log.steps[0]?.steps[0]).toMatchObject({
    out: expect.stringMatching(/^REDACTED:/),
    headers: { 'X-Key': [expect.stringMatching(/^REDACTED:/)], 'X-Open': ['o'] },
  });
  expect(log.steps[1]?.steps[0]).toMatchObject({ out: expect.stringMatching(/^REDACTED:/) });
  expect(log.workflowRunResponse).toMatch(/^REDACTED:/);
});
