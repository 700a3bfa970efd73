import { StepSize } from '../../../src/services/queue/store/step-size.js';

/** A step as Postgres ends it when it takes too long. */
const ended = Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });

test('a step that was ended is tried again with half as many rows, and the next one begins with those', async () => {
  const size = new StepSize(1_000);
  const tried: number[] = [];
  const step = async (rows: number) => {
    tried.push(rows);
    if (rows > 200) throw ended;
    return rows;
  };
  expect(await size.run(step)).toBe(125);
  expect(tried).toEqual([1_000, 500, 250, 125]);
  // it was quick
  expect(size.size).toBe(250);
});

test('what fails otherwise, or with a single row, fails', async () => {
  const size = new StepSize(8);
  const tried: number[] = [];
  const failure = size.run(async (rows) => {
    tried.push(rows);
    throw ended;
  });
  await expect(failure).rejects.toBe(ended);
  expect(tried).toEqual([8, 4, 2, 1]);
  const other = new Error('syntax error');
  await expect(
    new StepSize(8).run(async () => {
      throw other;
    }),
  ).rejects.toBe(other);
});
