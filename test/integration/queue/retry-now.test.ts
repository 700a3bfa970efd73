import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';
import { startWorkflowSite, type WorkflowSite } from '../../support/queue/workflow.js';
import { TOKENS } from '../../support/tokens.js';

const READER = 'read-only-token-of-the-queue-tests';
const namespace = queueNamespace({ readOnlyToken: READER });
let gateway: RunningGateway;
let receiver: Receiver;
let site: WorkflowSite;
let status = 200;

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  receiver = await startReceiver((_, response) => void response.writeHead(status).end());
  site = await startWorkflowSite(() => gateway.url);
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await site?.stop();
  await namespace.remove();
});
beforeEach(() => {
  status = 200;
});

async function retryNow(
  id: string | undefined,
  token: string = TOKENS.queue,
): Promise<[number, { messageId?: string; error?: string }]> {
  const reply = await fetch(`${gateway.url}/queue/v2/messages/${id}/retry`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  });
  return [reply.status, (await reply.json()) as { messageId?: string; error?: string }];
}

const at = (path: string) => receiver.received.filter(({ url }) => url === path);
const put = async (path: string, headers: Record<string, string>) =>
  (await publishUntilTaken(gateway, `${receiver.url}${path}`, headers)).body.messageId;

it('delivers a delayed message at once, and not again at its old time', async () => {
  const id = await put('/delayed', { 'upstash-delay': '4s' });
  expect(await retryNow(id)).toEqual([200, { messageId: id }]);
  await eventually(() => expect(at('/delayed')).toHaveLength(1), 3_000);
  // until its outcome is written it is being delivered
  await eventually(async () =>
    expect(await retryNow(id)).toEqual([404, { error: expect.stringContaining(id as string) }]),
  );
  await put('/marker', { 'upstash-delay': '5s' });
  await eventually(() => expect(at('/marker')).toHaveLength(1));
  expect(at('/delayed')).toHaveLength(1);
});

it('makes the next attempt of a message now, and gives it none beside those that it has', async () => {
  status = 500;
  const id = await put('/failing', { 'upstash-retries': '1', 'upstash-retry-delay': '3600000' });
  await eventually(async () => expect((await retryNow(id))[0]).toBe(200));
  await eventually(() => expect(at('/failing')).toHaveLength(2));
  expect(at('/failing').map(({ headers }) => headers['upstash-retried'])).toEqual(['0', '1']);
  await eventually(async () => {
    const [letter] = await namespace.query('select id from $schema.dead_letters where message_id = $1', [id]);
    expect(letter).toBeDefined();
  });
});

it('ends the sleep of a workflow', async () => {
  const url = site.add('/sleeper', async (context) => {
    await context.sleep('nap', 3_600);
    return 'awake';
  });
  const { workflowRunId } = await site.client.trigger({ url });
  const sleeping = `select m.id from $schema.messages m join $schema.workflow_runs r on r.no = m.run_no
    where r.id = $1 and m.finished_at is null and m.due_at > now() + interval '1 minute'`;
  const id = await eventually(async () => {
    const [row] = await namespace.query<{ id: string }>(sleeping, [workflowRunId]);
    expect(row).toBeDefined();
    return row?.id;
  });
  expect(await retryNow(id)).toEqual([200, { messageId: id }]);
  await eventually(async () => {
    const { runs } = await site.client.logs({ workflowRunId });
    expect(runs[0]).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '"awake"' });
  });
});

it('refuses what waits for no time, and changes nothing', async () => {
  expect(await retryNow('msg_nobody')).toEqual([404, { error: expect.stringContaining('msg_nobody') }]);
  const reply = await fetch(`${gateway.url}/queue/v2/enqueue/in-order/${receiver.url}/ordered`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}`, 'upstash-delay': '1h' },
  });
  const { messageId } = (await reply.json()) as { messageId: string };
  expect(await retryNow(messageId)).toEqual([400, { error: expect.stringContaining('in a queue') }]);
  const delayed = await put('/reader', { 'upstash-delay': '1h' });
  expect((await retryNow(delayed, READER))[0]).toBe(403);
  expect(at('/ordered').length + at('/reader').length).toBe(0);
});

it('of two that ask at once one begins the delivery, and it is delivered once', async () => {
  const id = await put('/twice', { 'upstash-delay': '1h' });
  const statuses = (await Promise.all([1, 2, 3, 4].map(() => retryNow(id)))).map(([code]) => code);
  expect(statuses.filter((code) => code === 200)).toHaveLength(1);
  await eventually(() => expect(at('/twice')).toHaveLength(1));
  await put('/after', {});
  await eventually(() => expect(at('/after')).toHaveLength(1));
  expect(at('/twice')).toHaveLength(1);
});
