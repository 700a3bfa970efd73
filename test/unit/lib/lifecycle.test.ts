import { Lifecycle } from '../../../src/lib/lifecycle.js';
import { createLogger } from '../../../src/lib/logger.js';

it('releases last-in first-out, once, past failures and past what never ends', async () => {
  const lifecycle = new Lifecycle(createLogger('silent'));
  const order: string[] = [];
  lifecycle.onStop('first', () => void order.push('first'));
  lifecycle.onStop('fails', () => {
    order.push('fails');
    throw new Error('no');
  });
  lifecycle.onStop('hangs', () => new Promise(() => order.push('hangs')), 20);
  lifecycle.onStop('last', async () => void order.push('last'));
  const [errors, again] = await Promise.all([lifecycle.stop(), lifecycle.stop()]);
  expect(order).toEqual(['last', 'hangs', 'fails', 'first']);
  expect(errors.map((error) => error.message)).toEqual(['hangs did not end within 20 ms', 'no']);
  expect(again).toBe(errors);
});
