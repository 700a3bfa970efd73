import { Turns } from '../../../src/services/broker/records/turns.js';

const never = new AbortController().signal;

test('one at a time, in the order of asking', async () => {
  const turns = new Turns();
  const order: number[] = [];
  let atOnce = 0;
  await Promise.all(
    [1, 2, 3].map(async (id) => {
      const end = await turns.take(never);
      expect(++atOnce).toBe(1);
      await Promise.resolve();
      order.push(id);
      atOnce--;
      end?.();
      end?.();
    }),
  );
  expect(order).toEqual([1, 2, 3]);
});

test('who leaves the line is passed over', async () => {
  const turns = new Turns();
  const end = await turns.take(never);
  const impatient = new AbortController();
  const left = turns.take(impatient.signal);
  const patient = turns.take(never);
  impatient.abort();
  expect(await left).toBeUndefined();
  expect(await turns.take(impatient.signal)).toBeUndefined();
  end?.();
  expect(await patient).toBeDefined();
});
