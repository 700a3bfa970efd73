import { type AddressInfo, createServer } from 'node:net';
import { type CallSettings, WorkflowNonRetryableError } from '@upstash/workflow';
import { amount } from '../../../support/amount.js';
import { eventually } from '../../../support/eventually.js';
import { endedRuns, resultOf, silenceSdk, workflowsUnderTest } from '../../../support/queue/workflow.js';

const MIB = 1024 * 1024;
/** `npm run test:full` asks for 5 MiB. */
const SIZE = amount(1, 5) * MIB;

silenceSdk();

/** Calls to third parties, and payloads and results that are large. */
const { namespace, site, freshPath, callsOf } = workflowsUnderTest('calls', {
  workflow: { maxCallResponse: SIZE + 1_024 },
});

/** A workflow that calls once. @returns what its step got, and the deliveries that brought the answer */
async function called(settings: object) {
  const url = site.add(freshPath(), async (context) => {
    const { status, body } = await context.call<string>('call', settings as CallSettings);
    return { status, length: String(body).length, body: String(body).slice(0, 200) };
  });
  const { workflowRunId } = await site.client.trigger({ url, headers: { 'x-mine': 'yes' } });
  const [run] = await endedRuns(namespace, workflowRunId);
  const brought = callsOf(url).filter(({ headers }) => headers['upstash-workflow-callback'] !== undefined);
  return {
    state: run?.state,
    ...(resultOf(run) as { status: number; length: number; body: string }),
    brought,
  };
}

/** A third party that answers each time with the next status. */
const party = (...statuses: number[]) => {
  let tries = 0;
  return site.addPlain(freshPath(), () => {
    const status = statuses[Math.min(tries++, statuses.length - 1)] as number;
    return new Response(`try ${tries}`, { status });
  });
};

it.each([
  ['at once', [200], {}, 200, 'try 1', 1],
  ['with an error, which is not tried again unasked', [418], {}, 418, 'try 1', 1],
  ['at the last of two retries', [500, 503, 201], { retries: 2, retryDelay: '1' }, 201, 'try 3', 3],
  ['never well, with two retries', [500, 503, 502], { retries: 2, retryDelay: '1' }, 502, 'try 3', 3],
])(
  'a third party that answers %s: one answer comes to the workflow',
  async (_name, statuses, more, status, body, tries) => {
    const url = party(...statuses);
    const answer = await called({ url, ...more });
    expect(answer).toMatchObject({ state: 'RUN_SUCCESS', status, body });
    expect(answer.brought).toHaveLength(1);
    const [{ body: told } = { body: Buffer.from('{}') }] = answer.brought;
    expect(JSON.parse(String(told))).toMatchObject({ status, retried: tries - 1 });
    // an application may ask for them before the workflow is reached
    expect(answer.brought[0]?.headers['x-mine']).toBe('yes');
    const asked = callsOf(url);
    expect(asked).toHaveLength(tries);
    // a third party knows a repeat by it
    expect(new Set(asked.map(({ headers }) => headers['upstash-message-id'])).size).toBe(1);
  },
);

it('a third party that refuses connections, with a retry', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const answer = await called({ url: `http://127.0.0.1:${port}/`, retries: 1, retryDelay: '1' });
  expect(answer).toMatchObject({ state: 'RUN_SUCCESS', status: 0 });
  expect(answer.brought).toHaveLength(1);
  expect(JSON.parse(String(answer.brought[0]?.body))).toMatchObject({ retried: 1, maxRetries: 1 });
});

it('a third party that takes longer than the call may', async () => {
  let release: () => void = () => undefined;
  const released = new Promise<Response>((resolve) => {
    release = () => resolve(new Response('late'));
  });
  const url = site.addPlain(freshPath(), () => released);
  const answer = await called({ url, timeout: 1 });
  expect(answer).toMatchObject({ state: 'RUN_SUCCESS', status: 0 });
  expect(answer.brought).toHaveLength(1);
  release();
});

it('an answer up to the limit comes whole, a larger one is an error and not cut', async () => {
  const whole = site.addPlain(freshPath(), () => Response.json('w'.repeat(SIZE)));
  expect(await called({ url: whole })).toMatchObject({ state: 'RUN_SUCCESS', status: 200, length: SIZE });
  const tooLarge = site.addPlain(freshPath(), () => Response.json('w'.repeat(SIZE + MIB)));
  const { state, status, length } = await called({ url: tooLarge });
  expect([state, status, length < 1_000]).toEqual(['RUN_SUCCESS', 413, true]);
});

it('a large error comes to the failure function whole', async () => {
  const lengths: number[] = [];
  const url = site.add(freshPath(), () => Promise.reject(new WorkflowNonRetryableError('e'.repeat(SIZE))), {
    failureFunction: ({ failResponse }: { failResponse: string }) => {
      lengths.push(failResponse.length);
    },
  });
  const { workflowRunId } = await site.client.trigger({ url });
  expect((await endedRuns(namespace, workflowRunId))[0]?.state).toBe('RUN_FAILED');
  await eventually(() => expect(lengths).toEqual([SIZE]));
});

it('a large payload and large results: in steps, in branches, and for the failure function', async () => {
  const failures: unknown[] = [];
  const url = site.add(
    freshPath(),
    async (context) => {
      const payload = context.requestPayload as string;
      const one = await context.run('one', () => 'a'.repeat(SIZE));
      const [two, three] = await Promise.all([
        context.run('two', () => 'b'.repeat(SIZE)),
        context.run('three', () => 3),
      ]);
      await context.run('bad', () => {
        throw new WorkflowNonRetryableError(`${payload.length} ${one.length} ${two.length} ${three}`);
      });
    },
    {
      failureFunction: ({ context, failResponse }: never) => {
        const { requestPayload } = context as { requestPayload: string };
        failures.push([requestPayload.length, failResponse]);
      },
    },
  );
  const { workflowRunId } = await site.client.trigger({ url, body: 'p'.repeat(SIZE), retryDelay: '500' });
  const [run] = await endedRuns(namespace, workflowRunId);
  expect(run?.state).toBe('RUN_FAILED');
  await eventually(async () => {
    const rows = await namespace.query<{ state: string }>(
      "select failure #>> '{callback,state}' as state from $schema.workflow_runs where id = $1",
      [workflowRunId],
    );
    expect(rows).toEqual([{ state: 'CALLBACK_SUCCESS' }]);
  });
  expect(failures).toEqual([[SIZE, `${SIZE} ${SIZE} ${SIZE} 3`]]);
});
