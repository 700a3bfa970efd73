import fc from 'fast-check';
import { Batcher } from '../../../src/services/queue/store/batcher.js';

it('gives everybody the result of their own input, in batches no larger and no more at once than allowed', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(), { maxLength: 60 }),
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 3 }),
      async (inputs, size, parallel) => {
        let running = 0;
        const batcher = new Batcher<number, number>({
          size,
          parallel,
          run: async (batch) => {
            running += 1;
            expect(batch.length).toBeGreaterThan(0);
            expect(batch.length).toBeLessThanOrEqual(size);
            expect(running).toBeLessThanOrEqual(parallel);
            await new Promise(setImmediate);
            running -= 1;
            return batch.map((n) => n + 1);
          },
        });
        const results = await Promise.all(inputs.map((n) => batcher.add(n)));
        expect(results).toEqual(inputs.map((n) => n + 1));
      },
    ),
  );
});

it('makes one call of what comes in one tick or while it is busy', async () => {
  const batches: number[][] = [];
  let release: () => void = () => undefined;
  const batcher = new Batcher<number, number>({
    size: 100,
    parallel: 1,
    run: async (batch) => {
      batches.push([...batch]);
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return batch;
    },
  });
  const first = Promise.all([batcher.add(1), batcher.add(2)]);
  await new Promise(setImmediate);
  const second = Promise.all([batcher.add(3), batcher.add(4), batcher.add(5)]);
  release();
  await first;
  await new Promise(setImmediate);
  release();
  await second;
  expect(batches).toEqual([
    [1, 2],
    [3, 4, 5],
  ]);
});

it('fails everybody of a failed call, and nobody after', async () => {
  let calls = 0;
  const batcher = new Batcher<number, number>({
    size: 2,
    parallel: 1,
    run: async (batch) => {
      calls += 1;
      if (calls === 1) throw new Error('away');
      return batch;
    },
  });
  const results = await Promise.allSettled([batcher.add(1), batcher.add(2), batcher.add(3)]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
});

it('runs each input alone when one of them may be at fault', async () => {
  const batcher = new Batcher<number, number>({
    run: async (inputs) => {
      if (inputs.includes(13)) throw new Error('bad luck');
      return inputs.map((n) => n * 2);
    },
    size: 10,
    parallel: 1,
    tellApart: () => true,
  });
  const results = await Promise.allSettled([1, 13, 3].map((n) => batcher.add(n)));
  expect(results).toMatchObject([{ value: 2 }, { reason: { message: 'bad luck' } }, { value: 6 }]);
});

it('takes no more than the weight of a run, but one input whatever it weighs', async () => {
  const runs: number[][] = [];
  const batcher = new Batcher<number, undefined>({
    run: async (inputs) => {
      runs.push([...inputs]);
      return inputs.map(() => undefined);
    },
    size: 10,
    parallel: 1,
    weigh: (n) => n,
    weight: 10,
  });
  await Promise.all([4, 5, 3, 50, 1, 2].map((n) => batcher.add(n)));
  expect(runs).toEqual([[4, 5], [3], [50], [1, 2]]);
});
