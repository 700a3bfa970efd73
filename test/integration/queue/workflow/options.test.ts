import {
  type CallSettings,
  type WorkflowContext,
  WorkflowNonRetryableError,
  WorkflowRetryAfterError,
} from '@upstash/workflow';
import { eventually } from '../../../support/eventually.js';
import { endedRuns, resultOf, silenceSdk, workflowsUnderTest } from '../../../support/queue/workflow.js';

silenceSdk();

/** What a run is started with, as the SDK asks for it. */
const { namespace, site, freshPath, callsOf } = workflowsUnderTest('options');

type Shown = Record<string, unknown> & { failureFunction?: { state: string } };

/** The log of a run that has failed, and its dead letter. */
const failed = (workflowRunId: string) =>
  eventually(async () => {
    const { runs } = await site.client.logs({ filter: { workflowRunId } } as never);
    expect(runs[0]?.workflowState).toBe('RUN_FAILED');
    const { messages } = await site.client.dlq.list({ filter: { workflowRunId } } as never);
    expect(messages).toHaveLength(1);
    return { log: runs[0] as unknown as Shown, letter: messages[0] as unknown as Shown };
  });

it('a run starts after its delay; its retries and their delay hold for each step', async () => {
  const times: number[] = [];
  const tries: Record<string, number> = {};
  const url = site.add(freshPath(), async (context) => {
    const third = (name: string) =>
      context.run(name, () => {
        times.push(performance.now());
        tries[name] = (tries[name] ?? 0) + 1;
        if (tries[name] < 3) throw new Error('not yet');
        return name;
      });
    return [await third('one'), await third('two')];
  });
  const started = performance.now();
  const { workflowRunId } = await site.client.trigger({
    url,
    delay: '2s',
    retries: 2,
    retryDelay: '300 * (1 + retried)',
  });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run)]).toEqual(['RUN_SUCCESS', ['one', 'two']]);
  const retried = callsOf(url).map(({ headers }) => headers['upstash-retried']);
  expect(retried).toEqual(['0', '1', '2', '0', '1', '2', '0']);
  expect((times[0] as number) - started).toBeGreaterThanOrEqual(2_000);
  const pauses = [0, 1, 3, 4].map((at) => (times[at + 1] as number) - (times[at] as number));
  for (const [at, least] of [300, 600, 300, 600].entries()) expect(pauses[at]).toBeGreaterThanOrEqual(least);
});

it('a step that asks for a later time is called again then', async () => {
  const times: number[] = [];
  const url = site.add(freshPath(), (context) =>
    context.run('busy', () => {
      times.push(performance.now());
      if (times.length === 1) throw new WorkflowRetryAfterError('later', '2s');
      return 'done';
    }),
  );
  const { workflowRunId } = await site.client.trigger({ url, retryDelay: '1' });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run)]).toEqual(['RUN_SUCCESS', 'done']);
  expect((times[1] as number) - (times[0] as number)).toBeGreaterThanOrEqual(2_000);
});

it.each([
  ['its retries are used up', () => new Error('no way'), 2, 3, 500],
  ['it says that no retry helps', () => new WorkflowNonRetryableError('no way'), 2, 1, 489],
])('the failure URL is told once when a step fails: %s', async (_name, error, retries, attempts, status) => {
  const told: { body: Record<string, unknown>; headers: Headers }[] = [];
  const failureUrl = site.addPlain(freshPath(), async (request) => {
    told.push({ body: (await request.json()) as Record<string, unknown>, headers: request.headers });
    return new Response('thanks');
  });
  const url = site.add(freshPath(), async (context) => {
    await context.run('good', () => 1);
    await context.run('bad', () => {
      throw error();
    });
  });
  const { workflowRunId } = await site.client.trigger({
    ...{ url, retries, retryDelay: '1', failureUrl, label: 'doomed' },
    body: { order: 7 },
    headers: { 'x-mine': 'yes' },
  });
  const { log, letter } = await failed(workflowRunId);
  await eventually(async () =>
    expect((await failed(workflowRunId)).log.failureFunction?.state).toBe('CALLBACK_SUCCESS'),
  );
  expect(callsOf(url)).toHaveLength(1 + attempts);
  expect(told).toHaveLength(1);
  expect(told[0]?.headers.get('upstash-workflow-is-failure')).toBe('true');
  expect(told[0]?.headers.get('x-mine')).toBe('yes');
  expect(told[0]?.body).toMatchObject({
    ...{ status, url, method: 'POST', workflowRunId, workflowCreatedAt: log.workflowRunCreatedAt },
    ...{ retried: attempts - 1, maxRetries: retries, dlqId: letter.dlqId },
    sourceMessageId: expect.stringMatching(/^msg_/),
    sourceBody: btoa('{"order":7}'),
    sourceHeader: expect.objectContaining({ 'X-Mine': ['yes'] }),
  });
  expect(JSON.parse(atob(String(told[0]?.body.body)))).toMatchObject({ message: 'no way' });
  expect(letter).toMatchObject({ label: 'doomed', responseStatus: status, workflowUrl: url });
});

it('without a failure function none is shown', async () => {
  const url = site.add(freshPath(), () => Promise.reject(new Error('no way')));
  const { workflowRunId } = await site.client.trigger({ url, retries: 0 });
  await failed(workflowRunId);
  // the workflow itself was asked, and said that it has none
  await eventually(() => expect(callsOf(url).map(({ status }) => status)).toEqual([500, 200]));
  await eventually(async () =>
    expect((await failed(workflowRunId)).log).not.toHaveProperty('failureFunction'),
  );
});

it('a failure function has its own retries', async () => {
  let told = 0;
  const url = site.add(freshPath(), () => Promise.reject(new WorkflowNonRetryableError('no way')), {
    failureFunction: () => {
      if (++told < 3) throw new Error('not yet');
    },
  });
  const { workflowRunId } = await site.client.trigger({ url, retries: 2, retryDelay: '1' });
  await eventually(async () =>
    expect((await failed(workflowRunId)).log.failureFunction?.state).toBe('CALLBACK_SUCCESS'),
  );
  expect(told).toBe(3);
});

it('a chosen id that is given twice is one run; after its end it is a new one', async () => {
  const event = `chosen-${Date.now()}`;
  const url = site.add(freshPath(), async (context) => {
    await context.waitForEvent('hold', event, { timeout: '1h' });
    return context.requestPayload;
  });
  const trigger = (body: string) => site.client.trigger({ url, body, workflowRunId: event });
  const { workflowRunId } = await trigger('first');
  expect(workflowRunId).toBe(`wfr_${event}`);
  expect(await Promise.all([trigger('second'), trigger('third')])).toEqual([
    { workflowRunId },
    { workflowRunId },
  ]);
  await eventually(async () => expect(await site.client.notify({ eventId: event })).toHaveLength(1));
  expect((await endedRuns(namespace, workflowRunId)).map(resultOf)).toEqual(['first']);
  expect(await trigger('fourth')).toEqual({ workflowRunId });
  await eventually(async () => expect(await site.client.notify({ eventId: event })).toHaveLength(1));
  expect((await endedRuns(namespace, workflowRunId, 2)).map(resultOf)).toEqual(['first', 'fourth']);
  const { runs } = await site.client.logs({ filter: { workflowRunId } } as never);
  expect(new Set(runs.map(({ workflowRunCreatedAt }) => workflowRunCreatedAt)).size).toBe(2);
  const [newest] = runs;
  const one = await site.client.logs({
    filter: { workflowRunId, workflowCreatedAt: newest?.workflowRunCreatedAt },
  } as never);
  expect(one.runs).toEqual([newest]);
});

it('runs are found and cancelled by each of their labels', async () => {
  const url = site.add(freshPath(), async (context) => {
    await context.sleep('long', '1d');
  });
  const [blue, both] = await site.client.trigger([
    { url, label: 'sdk-blue' },
    { url, label: ['sdk-blue', 'sdk-green'] as never },
  ]);
  const found = async (label: string) => {
    const { runs } = await site.client.logs({ filter: { label, workflowUrl: url } } as never);
    return runs.map(({ workflowRunId }) => workflowRunId).sort();
  };
  expect(await found('sdk-green')).toEqual([both?.workflowRunId]);
  expect(await found('sdk-blue')).toEqual([blue?.workflowRunId, both?.workflowRunId].sort());
  const seen = await eventually(() => {
    const calls = callsOf(url);
    expect(calls.length).toBeGreaterThanOrEqual(2);
    return calls.map(({ headers }) => headers['upstash-label']).sort();
  });
  expect(seen.slice(0, 2)).toEqual(['sdk-blue', 'sdk-blue,sdk-green']);
  expect(await site.client.cancel({ filter: { label: 'sdk-green' } } as never)).toEqual({ cancelled: 1 });
  expect(await site.client.cancel({ filter: { label: 'sdk-blue' } } as never)).toEqual({ cancelled: 1 });
});

const target = 'http://127.0.0.1:9/';
it.each<[string, RegExp, (context: WorkflowContext<never>) => Promise<unknown>]>([
  [
    'a call with a million retries',
    /retries/i,
    (context) => context.call('call', { url: target, retries: 1_000_000 } as CallSettings),
  ],
  [
    'a call to an address that is not to be reached',
    /10\.0\.0\.1/,
    (context) => context.call('call', { url: 'http://10.0.0.1/' } as CallSettings),
  ],
  ['a sleep that is too long', /delay/i, (context) => context.sleep('sleep', '40d')],
  [
    'a time that is too far away',
    /Not-Before|delay/i,
    (context) => context.sleepUntil('until', new Date(Date.now() + 40 * 86_400_000)),
  ],
  [
    'a wait that is too long',
    /timeout/i,
    (context) => context.waitForEvent('wait', 'never', { timeout: '9y' as never }),
  ],
  [
    'an invocation with a million retries',
    /retries/i,
    (context) =>
      context.invoke('invoke', {
        workflow: { workflowId: 'options-1' },
        body: 1,
        retries: 1_000_000,
      } as never),
  ],
  [
    'one of several branches with a sleep that is too long',
    /delay/i,
    (context) => Promise.all([context.run('good', () => 1), context.sleep('sleep', '40d')]),
  ],
])('fails a run at once with the reason, which asks for %s', async (_name, text, ask) => {
  const url = site.add(freshPath(), async (context) => {
    await context.run('good before', () => 1);
    await ask(context);
  });
  const { workflowRunId } = await site.client.trigger({ url, retries: 3 });
  const { letter } = await failed(workflowRunId);
  expect([letter.responseStatus, String(letter.responseBody)]).toEqual([489, expect.stringMatching(text)]);
  // the last is that of the failure function
  await eventually(() => expect(callsOf(url).map(({ status }) => status)).toEqual([200, 489, 200]));
});

it('an endpoint that posts a result to a run which was cancelled meanwhile answers 200 and stops', async () => {
  let started = '';
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const url = site.add(freshPath(), async (context) => {
    await context.run('slow', async () => {
      started = context.workflowRunId;
      await released;
    });
    await context.run('never', () => 1);
  });
  const { workflowRunId } = await site.client.trigger({ url });
  await eventually(() => expect(started).toBe(workflowRunId));
  expect(await site.client.cancel(workflowRunId as never)).toEqual({ cancelled: 1 });
  release();
  await eventually(() => expect(callsOf(url).map(({ status }) => status)).toEqual([200]));
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, run?.next_seq]).toEqual(['RUN_CANCELED', 1]);
});

it('a destination that is no workflow fails the run at its first answer', async () => {
  const url = site.addPlain(freshPath(), () => new Response('hello'));
  const { workflowRunId } = await site.client.trigger({ url, retries: 3 });
  const { log, letter } = await failed(workflowRunId);
  const error =
    'detected a non-workflow destination for trigger/invoke. make sure you are sending the request to the correct endpoint';
  expect(letter.responseBody).toBe(error);
  expect(log.steps).toMatchObject([
    { type: 'sequential' },
    { type: 'next', steps: [{ state: 'STEP_FAILED', errors: [{ error, status: 200, body: 'hello' }] }] },
  ]);
});
