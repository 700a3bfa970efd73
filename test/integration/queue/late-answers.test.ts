import { setTimeout as sleep } from 'node:timers/promises';
import { backendAddress } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { publish, queueNamespace, startReceiver } from '../../support/queue/queue.js';
import { startRelay } from '../../support/tcp-relay.js';

/** Longer than a sender waits for Postgres (1.8 s), and much shorter than the lease of a message. */
const HELD_MS = 3_000;
const LEASE_MS = 600_000;

it('delivers a message as soon as Postgres has told of its claim, though a sender would have given up', async () => {
  const namespace = queueNamespace({ leaseMs: LEASE_MS });
  const address = new URL(backendAddress('PORTICO_DATABASE_URL'));
  const relay = await startRelay(Number(address.port));
  address.port = String(relay.port);
  const gateway = await startGateway({ queue: namespace.config }, { PORTICO_DATABASE_URL: address.href });
  const receiver = await startReceiver();
  try {
    await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
    relay.holdAnswersTo('queue_claim');
    expect((await publish(gateway, receiver.url)).status).toBe(200);
    await eventually(async () => {
      const [row] = await namespace.query<{ state: string }>('select state from $schema.messages');
      expect(row?.state).toBe('ACTIVE');
    });
    await sleep(HELD_MS);
    relay.release();
    await eventually(() => expect(receiver.received).toHaveLength(1));
  } finally {
    relay.release();
    await gateway.stop();
    await relay.stop();
    await receiver.stop();
    await namespace.remove();
  }
});
