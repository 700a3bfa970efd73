import type { RouteContext } from '../../../src/http/route.js';
import type { Row } from '../../../src/services/kv/commands/commands.js';
import { Admission } from '../../../src/services/kv/redis/admission.js';

const MIB = 1024 * 1024;

function contextOf(token: string): RouteContext {
  const { signal } = new AbortController();
  return { principal: { name: token, access: 'full' }, signal, limitTo: () => {} } as unknown as RouteContext;
}

/** Nothing takes longer beside others: on a busy machine fewer would be let in. */
const admissionAtRest = () =>
  new Admission(
    10_000,
    () => 0,
    undefined,
    () => 0,
  );

/** Requests of one token that are at work until `end` is called, which answers the first with a body of so many bytes. */
function worker(admission: Admission, token: string) {
  const atWork: ((body: Buffer) => void)[] = [];
  const work = () =>
    new Promise<{ body: Buffer }>((resolve) => {
      atWork.push((body) => resolve({ body }));
    });
  return {
    count: () => atWork.length,
    begin: (count: number) =>
      Array.from({ length: count }, () => admission.inTurn([] as Row[], contextOf(token), work)),
    end: async (bytes: number) => {
      atWork.shift()?.(Buffer.alloc(bytes));
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test('large replies are made a few at a time, by what the last ones of their token took in memory', async () => {
  const large = worker(admissionAtRest(), 'large');
  const all = large.begin(10);
  // 16 MiB each until one is known
  expect(large.count()).toBe(4);
  const counts: number[] = [];
  while (large.count() > 0) {
    await large.end(4 * MIB);
    counts.push(large.count());
  }
  // 32 MiB each from then on; three had begun before
  expect(counts).toEqual([3, 3, 2, 2, 2, 2, 2, 2, 1, 0]);
  await Promise.all(all);
});

test('what takes little does not wait behind it', async () => {
  const admission = admissionAtRest();
  const [large, small] = [worker(admission, 'large'), worker(admission, 'small')];
  const known = small.begin(1);
  await small.end(100);
  const all = [...known, ...large.begin(6), ...small.begin(3)];
  expect(large.count()).toBe(4);
  expect(small.count()).toBe(3);
  while (large.count() > 0) await large.end(4 * MIB);
  while (small.count() > 0) await small.end(100);
  await Promise.all(all);
});
