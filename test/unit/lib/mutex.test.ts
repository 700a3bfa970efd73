import { Mutex } from '../../../src/lib/mutex.js';

const never = new AbortController().signal;

test('one at a time, in the order of asking', async () => {
  const mutex = new Mutex();
  const order: number[] = [];
  let atOnce = 0;
  await Promise.all(
    [1, 2, 3].map(async (id) => {
      const end = await mutex.acquire(never);
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
  const mutex = new Mutex();
  const end = await mutex.acquire(never);
  const impatient = new AbortController();
  const left = mutex.acquire(impatient.signal);
  const patient = mutex.acquire(never);
  impatient.abort();
  expect(await left).toBeUndefined();
  expect(await mutex.acquire(impatient.signal)).toBeUndefined();
  end?.();
  expect(await patient).toBeDefined();
});
