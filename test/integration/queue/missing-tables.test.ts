import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { OPERATOR_VARIABLES, operatorPage } from '../../support/operator.js';
import { publish, queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';

/** Somebody drops the queue's tables while it runs. */
const namespace = queueNamespace({ sweepIntervalMs: 600_000 });
let gateway: RunningGateway;
let receiver: Receiver;

const ready = async () => expect((await operatorPage(gateway.url, '/readyz')).status).toBe(200);

/** Publishes until that is taken and it arrives. */
async function isServed(path: string): Promise<void> {
  await eventually(async () => {
    expect((await publish(gateway, `${receiver.url}${path}`)).status).toBe(200);
  });
  await eventually(() => expect(receiver.received.map(({ url }) => url)).toContain(path));
}

beforeAll(async () => {
  receiver = await startReceiver();
  gateway = await startGateway({ queue: namespace.config }, OPERATOR_VARIABLES);
  await eventually(ready);
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});

it('the schema is made again, without a restart', async () => {
  await isServed('/before');
  await namespace.query('drop schema $schema cascade');
  const told = await publish(gateway, `${receiver.url}/lost`);
  expect([told.status, told.body.error]).toEqual([
    503,
    'The tables of the queue are missing in its database; they are being made again.',
  ]);
  await isServed('/after');
  await eventually(ready);
});

it('a table that is gone alone is not made beside the others, and who may see it is told', async () => {
  await namespace.query('drop table $schema.daily_usage, $schema.messages cascade');
  await eventually(async () => {
    expect((await publish(gateway, `${receiver.url}/none`)).status).toBe(503);
    const page = await operatorPage(gateway.url, '/readyz');
    expect([page.status, page.text]).toEqual([
      503,
      expect.stringContaining('is missing: restore it, or drop the schema'),
    ]);
  });
  await namespace.query('drop schema $schema cascade');
  await isServed('/at-last');
  await eventually(ready);
});
