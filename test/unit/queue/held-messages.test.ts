import { setImmediate as turn } from 'node:timers/promises';
import { createLogger } from '../../../src/lib/logger.js';
import { HeldMessages, type HeldMessagesOptions } from '../../../src/services/queue/order/held-messages.js';

it('lets messages of many keys and queues go a few at a time, and of all of them', async () => {
  let running = 0;
  let most = 0;
  const seen: string[] = [];
  const release = async (name: string) => {
    most = Math.max(most, ++running);
    await turn();
    running -= 1;
    seen.push(name);
    if (name === 'k7') throw new Error('the database is away');
  };
  const held = new HeldMessages({
    flows: {
      release: async (key: string) => {
        await release(key);
        return { tickets: [], roomInMs: undefined };
      },
    },
    queues: {
      release: async (name: string) => {
        await release(name);
        return [];
      },
    },
    sender: { sendAll: async () => undefined },
    log: createLogger('silent'),
    atOnce: 3,
  } as unknown as HeldMessagesOptions);
  const keys = Array.from({ length: 100 }, (_, i) => `k${i}`);
  const queues = keys.map((key) => `q${key}`);
  await Promise.all([
    ...keys.map((key) => held.releaseKey(key)),
    ...queues.map((name) => held.releaseQueue(name)),
  ]);
  expect(most).toBe(3);
  expect(seen.sort()).toEqual([...keys, ...queues].sort());
  held.stop();
});
