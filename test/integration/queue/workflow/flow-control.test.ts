import { setTimeout as sleep } from 'node:timers/promises';
import type { CallSettings, WorkflowContext } from '@upstash/workflow';
import { endedRuns, resultOf, workflowsUnderTest } from '../../../support/queue/workflow.js';

const { namespace, site, freshPath } = workflowsUnderTest('flow');

/** Counts how many are at work at once. */
function gauge() {
  let now = 0;
  const seen = { most: 0, all: 0 };
  const during = async <T>(work: () => Promise<T> | T): Promise<T> => {
    seen.all++;
    seen.most = Math.max(seen.most, ++now);
    try {
      return await work();
    } finally {
      now--;
    }
  };
  return { seen, during };
}

/** Serves a workflow and counts its deliveries at once, from their arrival to their answer. */
function counted(run: (context: WorkflowContext<never>) => Promise<unknown>) {
  const { seen, during } = gauge();
  const inner = freshPath();
  const handlers = site.add(inner, run, { url: `${site.url}${inner}-outer` });
  const url = site.addPlain(`${inner}-outer`, (request) =>
    during(async () => {
      const { status, headers, body } = await fetch(handlers, {
        method: 'POST',
        headers: Object.fromEntries(
          [...request.headers].filter(([name]) => !/^(host|connection|content-length)$/.test(name)),
        ),
        body: await request.text(),
      });
      // longer than it takes to deliver the next one
      await sleep(20);
      return new Response(body, { status, headers });
    }),
  );
  return { url, seen };
}

/** One after the other: each looks again and again until its run has ended. */
async function results(runs: readonly { workflowRunId: string }[]) {
  const found: unknown[] = [];
  for (const { workflowRunId } of runs) {
    const [run] = await endedRuns(namespace, workflowRunId);
    found.push([run?.state, resultOf(run)]);
  }
  return found;
}

/** When attempts under a key began, by Postgres' clock, which the periods go by, in ms. */
const begun = async (key: string): Promise<number[]> => {
  const rows = await namespace.query<{ ms: number }>(
    `select (extract(epoch from e.at) * 1000)::float8 as ms from $schema.events e
      join $schema.messages m on m.id = e.message_id where e.state = 'ACTIVE' and m.flow_key = $1 order by e.at`,
    [key],
  );
  return rows.map(({ ms }) => ms);
};

const FIVE = [1, 2, 3, 4, 5];

const steps = async (context: WorkflowContext<never>) => {
  const one = await context.run('one', () => context.requestPayload as number);
  const [two, three] = await Promise.all([
    context.run('two', () => one + 1),
    context.run('three', () => one + 2),
  ]);
  return two + three;
};

it('of five runs under one key with parallelism 1 never two are called at once, their branches neither', async () => {
  const { url, seen } = counted(steps);
  const flowControl = { key: 'one-at-a-time', parallelism: 1 };
  const runs = await site.client.trigger(FIVE.map((body) => ({ url, body, flowControl })));
  expect(await results(runs)).toEqual(FIVE.map((n) => ['RUN_SUCCESS', 2 * n + 3]));
  // start, one step, two plans, their results
  expect(seen).toEqual({ most: 1, all: 5 * 6 });
  const { runs: logged } = await site.client.logs({
    filter: { flowControlKey: flowControl.key, workflowUrl: url },
  } as never);
  expect(new Set(logged.map(({ workflowRunId }) => workflowRunId))).toEqual(
    new Set(runs.map(({ workflowRunId }) => workflowRunId)),
  );
});

it('runs without a key are called beside each other', async () => {
  const { url, seen } = counted(steps);
  const runs = await site.client.trigger(FIVE.map((body) => ({ url, body })));
  await results(runs);
  expect(seen.most).toBeGreaterThan(1);
});

it('runs under one key begin no more steps in a period than the rate says', async () => {
  const url = site.add(freshPath(), (context) => context.run('one', () => context.requestPayload));
  const flowControl = { key: 'rated-runs', rate: 4, period: '2s' } as const;
  const runs = await site.client.trigger(FIVE.map((body) => ({ url, body, flowControl })));
  expect(await results(runs)).toEqual(FIVE.map((n) => ['RUN_SUCCESS', n]));
  const times = await begun(flowControl.key);
  expect(times).toHaveLength(10);
  // 4, 4 and 2: of a period all may begin at its end, but then not those of the next
  expect((times[8] as number) - (times[0] as number)).toBeGreaterThan(2_000);
});

/** A workflow that calls a third party under a key, and how many calls it got at once. */
function calling(flowControl: object) {
  const { seen, during } = gauge();
  const target = site.addPlain(freshPath(), () => during(() => sleep(30).then(() => Response.json('tea'))));
  const { url, seen: deliveries } = counted(async (context) => {
    const { body } = await context.call<string>('call', { url: target, flowControl } as CallSettings);
    // so that the workflow is called by many at once too
    await context.run('after', () => sleep(100));
    return body;
  });
  return { url, seen, deliveries };
}

it('a key of a call holds for the calls alone: one at a time, while the workflows go on beside each other', async () => {
  const { url, seen, deliveries } = calling({ key: 'called', parallelism: 1 });
  const runs = await site.client.trigger(FIVE.map((body) => ({ url, body })));
  expect(await results(runs)).toEqual(FIVE.map(() => ['RUN_SUCCESS', 'tea']));
  expect(seen).toEqual({ most: 1, all: 5 });
  expect(deliveries.most).toBeGreaterThan(1);
  expect(await begun('called')).toHaveLength(5);
});

it('a key of a call with a rate', async () => {
  const { url, seen } = calling({ key: 'rated-calls', rate: 2, period: '2s' });
  const runs = await site.client.trigger(FIVE.map((body) => ({ url, body })));
  expect(await results(runs)).toEqual(FIVE.map(() => ['RUN_SUCCESS', 'tea']));
  expect(seen.all).toBe(5);
  const times = await begun('rated-calls');
  expect(times).toHaveLength(5);
  expect((times[4] as number) - (times[0] as number)).toBeGreaterThan(2_000);
});

it('a run under a key may call under another one, and invoke a run under a third', async () => {
  const child = freshPath();
  site.add(child, (context) => context.run('child', () => 'grown'));
  const target = site.addPlain(freshPath(), () => Response.json('tea'));
  const url = site.add(freshPath(), async (context) => {
    const { body: drink } = await context.call<string>('call', {
      url: target,
      flowControl: { key: 'second', parallelism: 1 },
    } as CallSettings);
    const { body } = await context.invoke('invoke', {
      workflow: { workflowId: child.slice(1) },
      flowControl: { key: 'third', parallelism: 1 },
    } as never);
    return [drink, body];
  });
  const runs = await site.client.trigger(
    FIVE.map((body) => ({ url, body, flowControl: { key: 'first', parallelism: 1 } })),
  );
  expect(await results(runs)).toEqual(FIVE.map(() => ['RUN_SUCCESS', ['tea', 'grown']]));
  const counts = await Promise.all(
    ['first', 'second', 'third'].map(async (key) => (await begun(key)).length),
  );
  // a run: start, the answer of the call, what follows it, the result of the child; a child: start, what follows its step
  expect(counts).toEqual([5 * 4, 5, 5 * 2]);
});
