import { setTimeout as sleep } from 'node:timers/promises';
import { MessageStore } from '../../../src/services/queue/store/store.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

/** Messages whose gateway died in their attempt, and whose queue was paused then. */
const namespace = queueNamespace({ sweepIntervalMs: 300 });
const COUNT = 40;
let gateway: RunningGateway;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  gateway = await startGateway({ queue: namespace.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterEach(() => jest.restoreAllMocks());
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});

async function call(path: string, body?: unknown): Promise<void> {
  const reply = await fetch(`${gateway.url}/queue/v2/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  expect(reply.status).toBe(200);
}

/** The queue's messages as a gateway leaves them that died while it delivered them. */
const abandon = (queue: string) =>
  namespace.query(
    `update $schema.messages set held = null, state = 'ACTIVE', claims = 1, lease_until = now() - interval '1 minute',
      sweep_at = now() - interval '1 minute' where queue_name = $1`,
    [queue],
  );
const heldIn = async (queue: string) =>
  (await namespace.query('select from $schema.messages where queue_name = $1 and held is not null', [queue]))
    .length;

it('the sweep gives them no ticket: they are held, and go when their queue is resumed', async () => {
  await call('queues', { queueName: 'swept', parallelism: COUNT, paused: true });
  for (let n = 0; n < COUNT; n++) await call(`enqueue/swept/${receiver.url}/${n}`);
  await abandon('swept');
  await eventually(async () => expect(await heldIn('swept')).toBe(COUNT));
  await sleep(500);
  expect(await namespace.query('select from $schema.messages where sweeps > 0')).toEqual([]);
  expect(receiver.received).toEqual([]);
  await call('queues/swept/resume');
  await eventually(() => expect(receiver.received).toHaveLength(COUNT));
});

it('a ticket that comes for one of them claims nothing', async () => {
  const stores: MessageStore[] = [];
  const claim = MessageStore.prototype.claim;
  jest.spyOn(MessageStore.prototype, 'claim').mockImplementation(function (this: MessageStore, ticket) {
    stores.push(this);
    return claim.call(this, ticket);
  });
  await call(`publish/${receiver.url}/plain`);
  await eventually(() => expect(stores).not.toEqual([]));
  jest.restoreAllMocks();
  await call('queues', { queueName: 'claimed', parallelism: 1, paused: true });
  await call(`enqueue/claimed/${receiver.url}/never`);
  const [row] = await namespace.query<{ id: string }>(
    `select id from $schema.messages where queue_name = 'claimed'`,
  );
  await abandon('claimed');
  expect(await stores[0]?.claim({ id: row?.id as string, attempt: 0 })).not.toMatchObject({
    kind: 'claimed',
  });
});
