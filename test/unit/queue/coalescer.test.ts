import { Coalescer } from '../../../src/services/queue/order/coalescer.js';

it('runs once for all who ask while a run goes on, with what they brought, and serves each name by itself', async () => {
  const coalescer = new Coalescer<number>((a, b) => a + b);
  const ran: [string, number][] = [];
  const ends: (() => void)[] = [];
  const ask = (name: string, change: number) =>
    coalescer.run(name, change, (sum) => {
      ran.push([name, sum]);
      return new Promise((resolve) => ends.push(resolve));
    });
  const first = ask('a', 1);
  const later = [ask('a', 2), ask('a', 3), ask('a', 4)];
  const other = ask('b', 5);
  expect(ran).toEqual([
    ['a', 1],
    ['b', 5],
  ]);
  ends[0]?.();
  await first;
  await new Promise(setImmediate);
  expect(ran.slice(2)).toEqual([['a', 9]]);
  // asked for while the second run goes on: that may have looked already
  const last = ask('a', 6);
  ends[1]?.();
  ends[2]?.();
  await Promise.all([...later, other]);
  await new Promise(setImmediate);
  expect(ran.slice(3)).toEqual([['a', 6]]);
  ends[3]?.();
  await last;
  const again = ask('a', 7);
  expect(ran.at(-1)).toEqual(['a', 7]);
  ends[4]?.();
  await again;
});
