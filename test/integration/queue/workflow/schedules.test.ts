import { Client as QueueClient } from '@upstash/qstash';
import { WorkflowNonRetryableError } from '@upstash/workflow';
import { eventually } from '../../../support/eventually.js';
import { endedRuns, resultOf, workflowsUnderTest } from '../../../support/queue/workflow.js';
import { TOKENS } from '../../../support/tokens.js';

const { namespace, gateway, site } = workflowsUnderTest('scheduled');
let client: QueueClient;

beforeAll(() => {
  client = new QueueClient({ baseUrl: `${gateway.url}/queue`, token: TOKENS.queue });
});

/** Lets a schedule's time come. */
const tick = (scheduleId: string) =>
  namespace.query('update $schema.schedules set next_at = now() where id = $1', [scheduleId]);

/** The ids of the runs at a URL, oldest first, once there are `count`. */
const runsAt = (url: string, count: number) =>
  eventually(async () => {
    const { runs } = await site.client.logs({ filter: { workflowUrl: url } } as never);
    expect(runs).toHaveLength(count);
    return runs.map(({ workflowRunId }) => workflowRunId).reverse();
  });

it.each([
  ['that is forwarded', { 'Upstash-Label': 'for itself', 'Upstash-Forward-Upstash-Label': 'yearly' }],
  ['of the schedule', { 'Upstash-Label': 'yearly' }],
])(
  'each time of a schedule starts a run of its own, with its payload and headers and the label %s',
  async (which, labels) => {
    const url = site.add(`/scheduled ${which}`.replaceAll(' ', '-'), async (context) => {
      const one = await context.run('one', () => (context.requestPayload as { n: number }).n + 1);
      await context.sleep('nap', 1);
      return [one, context.headers.get('x-mine'), context.label];
    });
    const { scheduleId } = await client.schedules.create({
      destination: url,
      cron: '0 0 1 1 *',
      body: JSON.stringify({ n: 1 }),
      headers: {
        'x-mine': 'yes',
        'Content-Type': 'application/json',
        ...labels,
      },
    });
    for (const times of [1, 2, 3]) {
      await tick(scheduleId);
      const ids = await runsAt(url, times);
      expect(new Set(ids).size).toBe(times);
      const [run] = await endedRuns(namespace, ids.at(-1) as string);
      expect([run?.state, resultOf(run)]).toEqual(['RUN_SUCCESS', [2, 'yes', 'yearly']]);
    }
    await client.schedules.delete(scheduleId);
  },
);

it('a time that comes while the run before is under way starts another one; one run that fails does not touch the next', async () => {
  let isMended = false;
  const url = site.add('/overlapping', async (context) => {
    await context.waitForEvent('hold', 'overlap', { timeout: '1h' });
    await context.run('may fail', () => {
      if (!isMended) throw new WorkflowNonRetryableError('not yet');
    });
  });
  jest.spyOn(console, 'error').mockImplementation();
  const { scheduleId } = await client.schedules.create({ destination: url, cron: '0 0 1 1 *' });
  await tick(scheduleId);
  const [first] = await runsAt(url, 1);
  await tick(scheduleId);
  const [, second] = await runsAt(url, 2);
  await eventually(async () => expect(await site.client.getWaiters({ eventId: 'overlap' })).toHaveLength(2));
  await site.client.notify({ eventId: 'overlap' });
  expect((await endedRuns(namespace, first as string))[0]?.state).toBe('RUN_FAILED');
  expect((await endedRuns(namespace, second as string))[0]?.state).toBe('RUN_FAILED');
  isMended = true;
  await tick(scheduleId);
  const [, , third] = await runsAt(url, 3);
  await eventually(async () => expect(await site.client.notify({ eventId: 'overlap' })).toHaveLength(1));
  expect((await endedRuns(namespace, third as string))[0]?.state).toBe('RUN_SUCCESS');
  await client.schedules.delete(scheduleId);
});
