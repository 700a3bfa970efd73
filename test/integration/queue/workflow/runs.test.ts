import { setTimeout as sleep } from 'node:timers/promises';
import { type CallSettings, WorkflowNonRetryableError } from '@upstash/workflow';
import { eventually } from '../../../support/eventually.js';
import { endedRuns, resultOf, workflowsUnderTest } from '../../../support/queue/workflow.js';
import { TOKENS } from '../../../support/tokens.js';

const { namespace, gateway, site, freshPath } = workflowsUnderTest('workflow', {
  maxRetries: 5,
  workflow: { lazyBytes: 8_192 },
});

it('runs a workflow: its code once a step, its result kept', async () => {
  const ran: string[] = [];
  const url = site.add(freshPath(), async (context) => {
    const first = await context.run('first', () => {
      ran.push('first');
      return `hello ${(context.requestPayload as { name: string }).name}`;
    });
    const second = await context.run('second', async () => {
      ran.push('second');
      return { first, label: context.label, header: context.headers.get('x-mine') };
    });
    return second;
  });
  const { workflowRunId } = await site.client.trigger({
    url,
    body: { name: 'Ada' },
    label: 'greeting',
    headers: { 'x-mine': 'yes' },
  });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run)]).toEqual([
    'RUN_SUCCESS',
    { first: 'hello Ada', label: 'greeting', header: 'yes' },
  ]);
  expect(ran).toEqual(['first', 'second']);
});

it('sleeps, runs branches beside each other, and goes on once when all are done', async () => {
  const went: number[] = [];
  const url = site.add(freshPath(), async (context) => {
    await context.sleep('nap', 1);
    const branches = await Promise.all([
      context.run('one', async () => {
        await sleep(30);
        return 1;
      }),
      context.run('two', () => 2),
      context.sleep('short', 1),
      context.run('three', () => 3),
    ]);
    await context.sleepUntil('until', (Date.now() + 400) / 1_000);
    return context.run('sum', () => {
      went.push(1);
      return [branches[0], branches[1], branches[3]];
    });
  });
  const started = Date.now();
  const { workflowRunId } = await site.client.trigger({ url });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run)]).toEqual(['RUN_SUCCESS', [1, 2, 3]]);
  expect(went).toEqual([1]);
  expect(Date.now() - started).toBeGreaterThan(1_900);
});

it('calls a third party and brings its answer', async () => {
  const target = site.addPlain(freshPath(), async (request) =>
    Response.json({ got: await request.json(), method: request.method }, { status: 418 }),
  );
  const url = site.add(freshPath(), async (context) => {
    const { status, body } = await context.call('teapot', {
      url: target,
      method: 'POST',
      body: { tea: true },
    } as unknown as CallSettings);
    return { status, body };
  });
  const { workflowRunId } = await site.client.trigger({ url });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run)]).toEqual([
    'RUN_SUCCESS',
    { status: 418, body: { got: { tea: true }, method: 'POST' } },
  ]);
});

it('an endpoint that fails for good fails the run, and its failure function is called once', async () => {
  const failures: unknown[] = [];
  const url = site.add(
    freshPath(),
    async (context) => {
      await context.run('bad', () => {
        throw new WorkflowNonRetryableError('no way');
      });
    },
    {
      failureFunction: async ({ context, failResponse, failStatus }: never) => {
        const { requestPayload } = context as { requestPayload: unknown };
        failures.push([requestPayload, failResponse, failStatus]);
        return 'told';
      },
    },
  );
  const { workflowRunId } = await site.client.trigger({ url, body: { order: 7 } });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect(run?.state).toBe('RUN_FAILED');
  await eventually(() => expect(failures).toEqual([[{ order: 7 }, 'no way', 489]]));
});

it('invokes another workflow and gets its result', async () => {
  const child = freshPath();
  site.add(child, async (context) => {
    const doubled = await context.run('double', () => 2 * (context.requestPayload as number));
    return { doubled };
  });
  const url = site.add(freshPath(), async (context) => {
    const { body, isFailed, isCanceled } = await context.invoke('child', {
      workflow: { workflowId: child.slice(1) },
      body: 21,
    } as never);
    return { body, isFailed, isCanceled };
  });
  const { workflowRunId } = await site.client.trigger({ url });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run)]).toEqual([
    'RUN_SUCCESS',
    { body: { doubled: 42 }, isFailed: false, isCanceled: false },
  ]);
});

it('a history that is longer than a delivery takes is fetched by the SDK', async () => {
  const url = site.add(freshPath(), async (context) => {
    const first = await context.run('first', () => 'b'.repeat(20_000));
    const second = await context.run('second', () => 'c'.repeat(10));
    return [(context.requestPayload as string).length, first.length, second];
  });
  const { workflowRunId } = await site.client.trigger({ url, body: 'a'.repeat(20_000) });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run)]).toEqual(['RUN_SUCCESS', [20_000, 20_000, 'c'.repeat(10)]]);
  const path = new URL(url).pathname;
  expect(site.calls.filter((call) => call.path === path).every(({ body }) => body.length === 0)).toBe(true);
});

it('the same result posted many times at once is one step with one delivery; a run that has ended takes none', async () => {
  const target = site.addPlain(freshPath(), () => Response.json({}));
  const runId = `wfr_twice-${Date.now()}`;
  const post = (init: boolean, body: unknown) =>
    fetch(`${gateway.url}/queue/v2/batch`, {
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
  expect((await post(true, {})).status).toBe(200);
  const step = { stepId: 1, stepName: 'one', stepType: 'Run', concurrent: 1, out: '"1"' };
  const replies = await Promise.all(Array.from({ length: 20 }, () => post(false, step)));
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
  const answers = (await Promise.all(replies.map((reply) => reply.json()))) as {
    messageId: string;
    deduplicated?: boolean;
  }[][];
  expect(new Set(answers.map(([answer]) => answer?.messageId)).size).toBe(1);
  expect(answers.filter(([answer]) => answer?.deduplicated !== true)).toHaveLength(1);
  const rows = await namespace.query(
    'select m.id from $schema.messages m join $schema.workflow_runs r on m.run_no = r.no where r.id = $1',
    [runId],
  );
  expect(rows).toHaveLength(2);
  const cancelled = await fetch(`${gateway.url}/queue/v2/workflows/runs/${runId}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });
  expect(cancelled.status).toBe(200);
  expect((await post(false, { ...step, stepId: 2 })).status).toBe(400);
});

it('what cannot be had starts nothing: a batch with one bad entry, an option of a run beyond its limit', async () => {
  const url = site.add(freshPath(), async () => 'done');
  const before = site.calls.length;
  await expect(site.client.trigger([{ url }, { url: 'no-url' }, { url }])).rejects.toMatchObject({
    status: 412,
  });
  await expect(site.client.trigger({ url, retries: 1_000_000 })).rejects.toMatchObject({ status: 412 });
  const rows = await namespace.query('select 1 from $schema.workflow_runs where url = $1', [url]);
  expect([rows, site.calls.length]).toEqual([[], before]);
});

/** POST with the queue's token. */
const post = (path: string, headers: Record<string, string>, body?: string) =>
  fetch(`${gateway.url}/queue${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}`, ...headers },
    ...(body === undefined ? {} : { body }),
  });

it('starts a run without an SDK, once an id, with settings that hold for all of it', async () => {
  const seen: unknown[] = [];
  const url = site.add(freshPath(), async (context) => {
    await context.run('one', () =>
      seen.push([context.requestPayload, context.headers.get('x-mine'), context.label]),
    );
    return context.headers.get('x-mine');
  });
  const headers = {
    'content-type': 'application/json',
    'upstash-forward-x-mine': 'yes',
    'upstash-label': 'mine',
    'upstash-workflow-runid': 'rest-1',
    'upstash-delay': '1s',
  };
  const reply = await post(`/v2/trigger/${url}`, headers, '{"a":1}');
  const said = (await reply.json()) as object;
  expect([reply.status, said]).toEqual([
    201,
    { workflowRunId: 'rest-1', workflowCreatedAt: expect.any(Number) },
  ]);
  expect(await (await post(`/v2/trigger/${url}`, headers, '{"a":1}')).json()).toEqual({
    ...said,
    deduplicated: true,
  });
  const [run, ...more] = await endedRuns(namespace, 'rest-1');
  expect([run?.state, resultOf(run), more, seen]).toEqual([
    'RUN_SUCCESS',
    'yes',
    [],
    [[{ a: 1 }, 'yes', 'mine']],
  ]);
});

it('asks the SDK for the settings of a run that was started without one', async () => {
  const url = site.add(freshPath(), async (context) => context.run('one', () => context.requestPayload), {
    retries: 2,
  });
  const reply = await post(`/v2/trigger/${url}`, { 'upstash-workflow-unknown-sdk': 'true' }, '"told"');
  const { workflowRunId } = (await reply.json()) as { workflowRunId: string };
  const [run, ...more] = await endedRuns(namespace, workflowRunId);
  expect([run?.state, resultOf(run), more]).toEqual(['RUN_SUCCESS', 'told', []]);
});

it('starts many runs without an SDK, all or none', async () => {
  const url = site.add(freshPath(), (context) => context.run('one', () => 'done'));
  const entries = [1, 2, 3].map((n) => ({ destination: url, body: { n } }));
  const reply = await post('/v2/batch/trigger', {}, JSON.stringify(entries));
  const runs = (await reply.json()) as { workflowRunId: string }[];
  expect([reply.status, runs.length]).toEqual([201, 3]);
  for (const { workflowRunId } of runs)
    expect((await endedRuns(namespace, workflowRunId))[0]?.state).toBe('RUN_SUCCESS');
  const bad = await post('/v2/batch/trigger', {}, JSON.stringify([...entries, { destination: 'no-url' }]));
  expect(bad.status).toBe(412);
  expect(await namespace.query('select 1 from $schema.workflow_runs where url = $1', [url])).toHaveLength(3);
});

it.each([
  ['no workflow at all', {}, /non-workflow destination/],
  ['one with an SDK that is too old', { 'Upstash-Workflow-Sdk-Version': '1' }, /sdk versions after v1.0.0/],
])(
  'fails a run without an SDK at its first answer, when what answers is %s',
  async (_name, headers, text) => {
    const url = site.addPlain(freshPath(), () => new Response('hello', { headers: headers as never }));
    const { workflowRunId } = (await (await post(`/v2/trigger/${url}`, {}, 'x')).json()) as {
      workflowRunId: string;
    };
    const [run] = await endedRuns(namespace, workflowRunId);
    expect(run?.state).toBe('RUN_FAILED');
    const [letter] = await namespace.query<{ body: Buffer }>(
      'select m.failure_body as body from $schema.dead_letters d join $schema.messages m on m.id = d.message_id join $schema.workflow_runs r on r.no = d.run_no where r.id = $1',
      [workflowRunId],
    );
    expect(String(letter?.body)).toMatch(text);
  },
);
