import type { CallSettings } from '@upstash/workflow';
import { eventually } from '../../../support/eventually.js';
import { endedRuns, resultOf, silenceSdk, workflowsUnderTest } from '../../../support/queue/workflow.js';
import { TOKENS } from '../../../support/tokens.js';

silenceSdk();
const { namespace, gateway, site, freshPath } = workflowsUnderTest('dead');

const call = (method: string, path: string, body?: string, headers: Record<string, string> = {}) =>
  fetch(`${gateway.url}/queue${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.queue}`, ...headers },
    ...(body === undefined ? {} : { body }),
  });

/** The dead letter of a run, once it is there. */
const letterOf = (workflowRunId: string) =>
  eventually(async () => {
    const { messages } = await site.client.dlq.list({ filter: { workflowRunId } } as never);
    expect(messages).toHaveLength(1);
    return messages[0] as unknown as Record<string, unknown> & { dlqId: string };
  });

/** A workflow of three steps whose second fails until it is mended. */
function mendable() {
  const ran: string[] = [];
  const state = { isMended: false };
  const url = site.add(freshPath(), async (context) => {
    const first = await context.run('first', () => {
      ran.push('first');
      return 1;
    });
    const second = await context.run('second', () => {
      ran.push('second');
      if (!state.isMended) throw new Error('not yet');
      return first + 1;
    });
    return context.run('third', () => second + (context.requestPayload as number));
  });
  return { url, ran, state };
}

it('a run that failed goes on where it failed, once, as a new run', async () => {
  const { url, ran, state } = mendable();
  const { workflowRunId } = await site.client.trigger({ url, body: 10, retries: 0, label: 'mine' });
  const letter = await letterOf(workflowRunId);
  expect(letter).toMatchObject({
    ...{ workflowRunId, workflowUrl: url, workflowCreatedAt: expect.any(Number), responseStatus: 500 },
    ...{ label: 'mine', failureCallback: url },
  });
  const resent = await call('POST', `/v2/dlq/retry/${letter.dlqId}`);
  expect([resent.status, await resent.json()]).toEqual([
    412,
    { error: expect.stringContaining('/v2/workflows/dlq/resume') },
  ]);
  state.isMended = true;
  for (const name of ['Upstash-Workflow-RunId', 'Service-Workflow-Url'])
    expect(
      (
        await call('POST', `/v2/workflows/dlq/resume/${letter.dlqId}`, undefined, {
          [name]: 'http://x.example',
        })
      ).status,
    ).toBe(412);
  const made = (await site.client.dlq.resume({ dlqId: letter.dlqId, retries: 2 } as never)) as unknown as {
    workflowRunId: string;
  };
  expect(made.workflowRunId).not.toBe(workflowRunId);
  const [run] = await endedRuns(namespace, made.workflowRunId);
  expect([run?.state, resultOf(run), ran]).toEqual(['RUN_SUCCESS', 12, ['first', 'second', 'second']]);
  // the dead letter went with it
  for (const path of ['resume', 'restart', 'callback'])
    expect((await call('POST', `/v2/workflows/dlq/${path}/${letter.dlqId}`)).status).toBe(404);
  await expect(site.client.dlq.resume({ dlqId: letter.dlqId } as never)).rejects.toMatchObject({
    status: 404,
  });
  expect((await call('GET', `/v2/workflows/dlq/${letter.dlqId}`)).status).toBe(404);
});

it('twenty at once that resume a run make one', async () => {
  const { url, state } = mendable();
  const { workflowRunId } = await site.client.trigger({ url, body: 1, retries: 0 });
  const { dlqId } = await letterOf(workflowRunId);
  state.isMended = true;
  const replies = await Promise.all(
    Array.from({ length: 20 }, () => call('POST', `/v2/workflows/dlq/resume/${dlqId}`)),
  );
  expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(404)]);
  const rows = await namespace.query('select 1 from $schema.workflow_runs where url = $1', [url]);
  expect(rows).toHaveLength(2);
});

it('a run that failed is started again from the beginning', async () => {
  const { url, ran, state } = mendable();
  const { workflowRunId } = await site.client.trigger({ url, body: 5, retries: 0 });
  const { dlqId } = await letterOf(workflowRunId);
  state.isMended = true;
  const made = (await site.client.dlq.restart({ dlqId } as never)) as unknown as { workflowRunId: string };
  const [run] = await endedRuns(namespace, made.workflowRunId);
  expect([run?.state, resultOf(run), ran]).toEqual([
    'RUN_SUCCESS',
    7,
    ['first', 'second', 'first', 'second'],
  ]);
});

it('branches that are done stay done, and an answer of a third party is not asked for again', async () => {
  const ran: string[] = [];
  let isMended = false;
  let asked = 0;
  const target = site.addPlain(freshPath(), () => Response.json({ n: ++asked }));
  const url = site.add(freshPath(), async (context) => {
    const { body } = await context.call('ask', { url: target } as unknown as CallSettings);
    const branches = await Promise.all([
      context.run('good', () => {
        ran.push('good');
        return 1;
      }),
      context.run('bad', async () => {
        ran.push('bad');
        // the other branch is to be done by then
        await new Promise((resolve) => setTimeout(resolve, 500));
        if (!isMended) throw new Error('not yet');
        return 2;
      }),
    ]);
    return [body, branches];
  });
  const { workflowRunId } = await site.client.trigger({ url, retries: 0 });
  const { dlqId } = await letterOf(workflowRunId);
  isMended = true;
  const made = (await site.client.dlq.resume({ dlqId } as never)) as unknown as { workflowRunId: string };
  const [run] = await endedRuns(namespace, made.workflowRunId);
  expect([run?.state, resultOf(run), ran.filter((name) => name === 'good'), asked]).toEqual([
    'RUN_SUCCESS',
    [{ n: 1 }, [1, 2]],
    ['good'],
    1,
  ]);
});

it('a failure function that failed is called again, and only then', async () => {
  let isMended = false;
  const told: unknown[] = [];
  const url = site.add(
    freshPath(),
    async (context) => {
      await context.run('bad', () => {
        throw new Error('no way');
      });
    },
    {
      failureFunction: ({ context }: { context: { requestPayload: unknown } }) => {
        if (!isMended) throw new Error('not yet');
        told.push(context.requestPayload);
      },
    },
  );
  const { workflowRunId } = await site.client.trigger({ url, body: { a: 1 }, retries: 0 });
  const state = (wanted: string) =>
    eventually(async () => {
      const letter = await letterOf(workflowRunId);
      expect(letter.failureCallbackInfo).toMatchObject({ state: wanted });
      return letter;
    });
  const { dlqId } = await state('CALLBACK_FAIL');
  const { messages } = await site.client.dlq.list({
    filter: { failureFunctionState: 'CALLBACK_FAIL' },
  } as never);
  expect(messages.map((one) => (one as unknown as { dlqId: string }).dlqId)).toContain(dlqId);
  isMended = true;
  expect(await site.client.dlq.retryFailureFunction({ dlqId })).toMatchObject({ workflowRunId });
  await state('CALLBACK_SUCCESS');
  expect(told).toEqual([{ a: 1 }]);
  expect((await call('POST', `/v2/workflows/dlq/callback/${dlqId}`)).status).toBe(400);
});

it('many are begun again or removed by filter, those of messages never', async () => {
  const { url } = mendable();
  const runs = await site.client.trigger(Array.from({ length: 3 }, () => ({ url, body: 1, retries: 0 })));
  for (const { workflowRunId } of runs) await letterOf(workflowRunId);
  const dead = site.addPlain(freshPath(), () => new Response('no', { status: 500 }));
  await call('POST', `/v2/publish/${dead}`, 'x', { 'upstash-retries': '0' });
  const letters = async (source: string) => {
    const reply = await call('GET', `/v2/dlq?source=${source}`);
    return ((await reply.json()) as { messages: { url: string; dlqId: string }[] }).messages;
  };
  const message = await eventually(async () => {
    const found = (await letters('queue')).find((one) => one.url === dead);
    expect(found).toBeDefined();
    return found as { dlqId: string };
  });
  for (const path of ['resume', 'restart', 'callback'])
    expect((await call('POST', `/v2/workflows/dlq/${path}/${message.dlqId}`)).status).toBe(404);
  expect((await call('DELETE', `/v2/workflows/dlq/${message.dlqId}`)).status).toBe(404);
  const restarted = (await (
    await call('POST', `/v2/workflows/dlq/restart?workflowUrl=${encodeURIComponent(url)}`)
  ).json()) as { workflowRuns: { workflowRunId: string }[]; cursor: string };
  expect([restarted.workflowRuns.length, restarted.cursor]).toEqual([3, '']);
  for (const { workflowRunId } of restarted.workflowRuns) await letterOf(workflowRunId);
  const deleted = (await (
    await call('DELETE', `/v2/workflows/dlq?workflowUrl=${encodeURIComponent(url)}`)
  ).json()) as object;
  expect(deleted).toEqual({ deleted: 3 });
  expect((await letters('queue')).map(({ dlqId }) => dlqId)).toContain(message.dlqId);
});

it.each([
  ['GET', '/v2/workflows/dlq?nope=1'],
  ['DELETE', '/v2/workflows/dlq?nope=1'],
  ['POST', '/v2/workflows/dlq/resume?nope=1'],
  ['POST', '/v2/workflows/dlq/restart?count=x'],
  ['POST', '/v2/workflows/dlq/restart?cursor=x'],
])('refuses %s %s with 400', async (method, path) => {
  expect((await call(method, path)).status).toBe(400);
});

it.each(['null', '5', '[1]', '{"dlqIds":5}', '{"dlqIDs":["1-1"]}', '{}'])(
  'does nothing for a body that is not understood: %s',
  async (body) => {
    const { url } = mendable();
    const { workflowRunId } = await site.client.trigger({ url, body: 1, retries: 0 });
    await letterOf(workflowRunId);
    for (const [method, path] of [
      ['DELETE', '/v2/workflows/dlq'],
      ['POST', '/v2/workflows/dlq/resume'],
      ['POST', '/v2/workflows/dlq/restart'],
    ] as const)
      expect((await call(method, path, body)).status).toBe(400);
    await letterOf(workflowRunId);
  },
);
