import type { WorkflowContext } from '@upstash/workflow';
import { amount } from '../../../support/amount.js';
import { eventually } from '../../../support/eventually.js';
import { endedRuns, resultOf, silenceSdk, workflowsUnderTest } from '../../../support/queue/workflow.js';

/** Rounds of three runs that end and are cancelled at once; `npm run test:full` asks for more. */
const ROUNDS = amount(20, 1_000);

silenceSdk();

/** Runs that start other runs. */
const { namespace, site, freshPath } = workflowsUnderTest('children');

jest.setTimeout(120_000 + ROUNDS * 3_000);

/** A workflow that starts the one at `child` and brings what it got. */
const parentOf = (child: string, options: object = {}) =>
  site.add(
    freshPath(),
    async (context) => {
      const { body, isFailed, isCanceled } = await context.invoke('child', {
        workflow: { workflowId: child.slice(1) },
        body: context.requestPayload,
        retries: 0,
      } as never);
      return { body, isFailed, isCanceled };
    },
    options,
  );

const waitsFor = (event: string) => async (context: WorkflowContext<never>) => {
  await context.waitForEvent('hold', event, { timeout: '1h' });
  return 'held';
};

/** The run at a URL that is under way. */
const openAt = (url: string) =>
  eventually(async () => {
    const rows = await namespace.query<{ id: string }>(
      'select id from $schema.workflow_runs where url = $1 and ended_at is null',
      [url],
    );
    expect(rows).toHaveLength(1);
    return rows[0]?.id as string;
  });

it('a run whose child fails or is cancelled is told so', async () => {
  const path = freshPath();
  site.add(path, () => Promise.reject(new Error('no way')));
  const failing = await site.client.trigger({ url: parentOf(path) });
  const [failed] = await endedRuns(namespace, failing.workflowRunId);
  expect([failed?.state, resultOf(failed)]).toMatchObject([
    'RUN_SUCCESS',
    { isFailed: true, isCanceled: false },
  ]);

  const held = freshPath();
  const childUrl = site.add(held, waitsFor('never'));
  const cancelling = await site.client.trigger({ url: parentOf(held) });
  expect(await site.client.cancel((await openAt(childUrl)) as never)).toEqual({ cancelled: 1 });
  const [cancelled] = await endedRuns(namespace, cancelling.workflowRunId);
  expect([cancelled?.state, resultOf(cancelled)]).toMatchObject([
    'RUN_SUCCESS',
    { isFailed: false, isCanceled: true },
  ]);
});

it('a child goes on when its parent has failed or is cancelled, and its end disturbs nobody', async () => {
  const event = `child-${Date.now()}`;
  const held = freshPath();
  const childUrl = site.add(held, waitsFor(event));
  // the other branch fails while the child is under way
  const url = site.add(freshPath(), async (context) => {
    await Promise.all([
      context.invoke('child', { workflow: { workflowId: held.slice(1) }, body: 1 } as never),
      context.run('bad', async () => {
        await openAt(childUrl);
        throw new Error('no way');
      }),
    ]);
  });
  const parent = await site.client.trigger({ url, retries: 0 });
  expect((await endedRuns(namespace, parent.workflowRunId))[0]?.state).toBe('RUN_FAILED');
  const child = await openAt(childUrl);
  await eventually(async () => expect(await site.client.notify({ eventId: event })).toHaveLength(1));
  expect((await endedRuns(namespace, child))[0]?.state).toBe('RUN_SUCCESS');
  const { runs } = await site.client.logs({ filter: { workflowRunId: child } } as never);
  expect(runs[0]?.invoker?.workflowRunId).toBe(parent.workflowRunId);
  const stuck = await namespace.query('select 1 from $schema.workflow_runs where ended_at is null');
  expect(stuck).toEqual([]);
});

it('three deep: every run ends however ends and cancellations meet, without a deadlock', async () => {
  const [grandchild, child] = [freshPath(), freshPath()];
  site.add(grandchild, (context) => context.run('one', () => 'grown'));
  site.add(child, async (context) => {
    const { body } = await context.invoke('grandchild', {
      workflow: { workflowId: grandchild.slice(1) },
      body: 1,
    } as never);
    return body;
  });
  const url = parentOf(child);
  for (let round = 0; round < ROUNDS; round += 10) {
    const runs = await site.client.trigger(Array.from({ length: 10 }, () => ({ url })));
    // spread over all that happens in a round
    await Promise.all(
      runs.map(async ({ workflowRunId }, i) => {
        if (i % 2 === 0) return;
        await new Promise((resolve) => setTimeout(resolve, i * 30));
        await site.client.cancel([workflowRunId]);
      }),
    );
    for (const [i, { workflowRunId }] of runs.entries()) {
      const [run] = await endedRuns(namespace, workflowRunId);
      if (i % 2 === 0) expect([run?.state, resultOf(run)]).toMatchObject(['RUN_SUCCESS', { body: 'grown' }]);
    }
  }
  await eventually(async () =>
    expect(await namespace.query('select id from $schema.workflow_runs where ended_at is null')).toEqual([]),
  );
  const states = await namespace.query<{ path: string; states: string[] }>(
    `select right(url, length($1)) as path, array_agg(distinct state) as states from $schema.workflow_runs
      where url like '%' || $1 or url like '%' || $2 group by 1`,
    [grandchild, child],
  );
  // nobody cancelled those
  expect(states.map(({ states: found }) => found)).toEqual([['RUN_SUCCESS'], ['RUN_SUCCESS']]);
});
