import { MessageStore } from '../../../src/services/queue/store/store.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { publish, publishUntilTaken, queueNamespace, startReceiver } from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

/** The sweep, which would hold what the parts under test forget, does not come. */
const namespace = queueNamespace({ sweepIntervalMs: 600_000, circuitFailures: 3, circuitOpenMs: 2_000 });
let gateway: RunningGateway;

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterEach(() => jest.restoreAllMocks());
afterAll(async () => {
  await gateway?.stop();
  await namespace.remove();
});

const call = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${gateway.url}/queue/v2/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}`, ...headers },
  });
async function enqueue(queue: string, url: string, headers: Record<string, string> = {}): Promise<string> {
  const reply = await call(`enqueue/${queue}/${url}`, headers);
  expect(reply.status).toBe(200);
  return ((await reply.json()) as { messageId: string }).messageId;
}
async function heldOf(id: string) {
  const [row] = await namespace.query<{ held: string | null }>(
    'select held from $schema.messages where id = $1 and finished_at is null',
    [id],
  );
  return row?.held;
}

it('a message of a paused queue whose attempt its destination puts off is held', async () => {
  const sick = await startReceiver(() => undefined);
  try {
    const once = { 'upstash-retries': '0', 'upstash-timeout': '1s' };
    for (let n = 0; n < 3; n++) await publishUntilTaken(gateway, `${sick.url}/${n}`, once);
    await eventually(async () => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      expect(metrics).toMatch(/portico_queue_circuits\{state="(open|half-open)"\} 1/);
    });
    // between its claim and the moment in which that is given back
    const postpone = MessageStore.prototype.postpone;
    const seen: unknown[] = [];
    jest.spyOn(MessageStore.prototype, 'postpone').mockImplementation(async function (
      this: MessageStore,
      ...given
    ) {
      const [message] = given;
      if (message.queueName === 'put-off') expect((await call('queues/put-off/pause')).status).toBe(200);
      const done = await postpone.apply(this, given);
      if (message.queueName === 'put-off') seen.push(await heldOf(message.id));
      return done;
    });
    // probes go out now and then: one of these is put off
    for (let n = 0; n < 5 && seen.length === 0; n++) {
      await enqueue('put-off', `${sick.url}/put-off`, { 'upstash-timeout': '60s' });
      await publishUntilTaken(gateway, `${sick.url}/probe`, once);
      await eventually(() => expect(seen.length).toBeGreaterThan(0), 15_000).catch(() => undefined);
    }
    expect(seen).toEqual(['order']);
  } finally {
    await sick.stop();
  }
});

/**
 * Stops the first message of a queue that a key has let in right before its claim.
 * @returns its id once it is there, and what lets it go on
 */
function stopBeforeClaim(): { stopped: () => string | undefined; goOn: () => void } {
  let goOn = () => {};
  const gate = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const claim = MessageStore.prototype.claim;
  let stopped: string | undefined;
  jest.spyOn(MessageStore.prototype, 'claim').mockImplementation(async function (this: MessageStore, ticket) {
    const admitted = await namespace.query(
      `select from $schema.flow_running r join $schema.messages m on m.id = r.message_id
        where m.id = $1 and m.queue_name is not null and r.claims = m.claims + 1`,
      [ticket.id],
    );
    if (admitted.length > 0 && stopped === undefined) {
      stopped = ticket.id;
      await gate;
    }
    return claim.call(this, ticket);
  });
  return { stopped: () => stopped, goOn };
}

it('a message that its key had let in when its queue was paused is let in anew', async () => {
  const answers: (() => void)[] = [];
  const receiver = await startReceiver(({ url }, response) => {
    if (url === '/other') answers.push(() => response.end());
    else response.end();
  });
  const urls = () => receiver.received.map(({ url }) => url);
  const { stopped, goOn } = stopBeforeClaim();
  try {
    const limit = { 'upstash-flow-control-key': 'one', 'upstash-flow-control-value': 'parallelism=1' };
    const id = await enqueue('keyed', `${receiver.url}/paused`, limit);
    await eventually(() => expect(stopped()).toBe(id));
    expect((await call('queues/keyed/pause')).status).toBe(200);
    expect(await heldOf(id)).toBe('order');
    goOn();
    // its room is another's now
    await publish(gateway, `${receiver.url}/other`, limit);
    await eventually(() => expect(urls()).toEqual(['/other']));
    expect((await call('queues/keyed/resume')).status).toBe(200);
    await eventually(async () => expect(await heldOf(id)).toBe('flow'));
    expect(urls()).toEqual(['/other']);
    for (const answer of answers) answer();
    await eventually(() => expect(urls()).toEqual(['/other', '/paused']));
  } finally {
    goOn();
    await receiver.stop();
  }
});

it('a message that its key had let in gives its room and its rate back when its queue is paused', async () => {
  const receiver = await startReceiver();
  const { stopped, goOn } = stopBeforeClaim();
  try {
    const limit = { 'upstash-flow-control-key': 'both', 'upstash-flow-control-value': 'rate=1, period=1h' };
    const id = await enqueue('rated', `${receiver.url}/paused`, limit);
    await eventually(() => expect(stopped()).toBe(id));
    const { body } = await publish(gateway, `${receiver.url}/waits`, limit);
    await eventually(async () => expect(await heldOf(body.messageId as string)).toBe('flow'));
    expect((await call('queues/rated/pause')).status).toBe(200);
    await eventually(() => expect(receiver.received.map(({ url }) => url)).toEqual(['/waits']));
    expect(await heldOf(id)).toBe('order');
  } finally {
    goOn();
    await receiver.stop();
  }
});
