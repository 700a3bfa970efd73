import { setImmediate as turn } from 'node:timers/promises';
import { createLogger } from '../../../src/lib/logger.js';
import { HeldMessages, type HeldMessagesOptions } from '../../../src/services/queue/order/held-messages.js';

it('lets messages of many keys and queues go a few at a time, but at once after a delivery', async () => {
  let running = 0;
  let most = 0;
  const seen: string[] = [];
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  let isOpen = false;
  const release = async (name: string) => {
    most = Math.max(most, ++running);
    await (isOpen || /9$/.test(name) ? turn() : gate);
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
  held.begin({ queues, flows: keys.map((key) => ({ key, parallelism: 1, rate: null, period: 1 })) });
  await turn();
  expect(most).toBe(3);
  // these wait behind those of the publishes, which do not end, and others were not begun
  await Promise.all([held.releaseKey('k99'), held.releaseQueue('qk99'), held.releaseKey('other9')]);
  expect(seen).toEqual(expect.arrayContaining(['k99', 'qk99', 'other9']));
  expect(seen).not.toContain('k50');
  most = 0;
  isOpen = true;
  open();
  while (seen.length < 203) await turn();
  expect(most).toBeLessThanOrEqual(3);
  expect(new Set(seen)).toEqual(new Set([...keys, ...queues, 'other9']));
  held.stop();
});
