import fc from 'fast-check';
import { type Outgoing, ProduceQueue } from '../../../src/services/broker/produce/produce-queue.js';

function record(
  id: number,
  { owner = 'o', topic = 't', partition = 0, bytes = 10, cancelled = false } = {},
): Outgoing {
  return {
    owner,
    topic,
    partition,
    bytes,
    record: { key: null, value: String(id), timestamp: 0, headers: [] },
    isCancelled: () => cancelled,
    succeed: () => {},
    fail: () => {},
    giveUpAt: 0,
    misses: 0,
  };
}

const ids = (records: readonly Outgoing[]) => records.map(({ record: { value } }) => Number(value));

function drain(queue: ProduceQueue, maxBytes: number): Outgoing[][] {
  const sends: Outgoing[][] = [];
  while (!queue.isEmpty) sends.push(queue.take(maxBytes).flatMap(({ records }) => records));
  return sends;
}

test("everything leaves once, in the order of each owner's arrival within its partition, within the limits", () => {
  const arrivals = fc.array(
    fc.record({
      owner: fc.constantFrom('a', 'b', 'c'),
      partition: fc.integer({ min: 0, max: 3 }),
      bytes: fc.integer({ min: 1, max: 150 }),
    }),
  );
  fc.assert(
    fc.property(arrivals, (list) => {
      const queue = new ProduceQueue(100);
      const records = list.map((options, i) => record(i, options));
      for (const one of records) queue.add(one);
      const sent: Outgoing[] = [];
      expect(queue.size).toBe(records.length);
      while (!queue.isEmpty) {
        const batches = queue.take(250);
        expect(batches.length).toBeGreaterThan(0);
        expect(new Set(batches.map(({ partition }) => partition)).size).toBe(batches.length);
        for (const { records: together, bytes } of batches) {
          expect(bytes).toBe(together.reduce((sum, one) => sum + one.bytes, 0));
          expect(bytes <= 150 || together.length === 1).toBe(true);
          sent.push(...together);
        }
        expect(batches.length === 1 || batches.reduce((sum, { bytes }) => sum + bytes, 0) <= 250).toBe(true);
      }
      for (const partition of [0, 1, 2, 3]) {
        for (const owner of ['a', 'b', 'c']) {
          const of = (all: readonly Outgoing[]) =>
            ids(all.filter((one) => one.partition === partition && one.owner === owner));
          expect(of(sent)).toEqual(of(records));
        }
      }
    }),
  );
});

test('a busy partition does not keep the others waiting', () => {
  const queue = new ProduceQueue(10);
  for (let i = 0; i < 5; i++) queue.add(record(i, { topic: 'busy' }));
  queue.add(record(9, { topic: 'other' }));
  expect(drain(queue, 10).map(ids)).toEqual([[0], [9], [1], [2], [3], [4]]);
});

test('who sends little waits for no more than two sends, however much another has waiting', () => {
  const queue = new ProduceQueue(100);
  for (let i = 0; i < 1_000; i++) queue.add(record(i, { owner: 'flood', partition: i % 4 }));
  for (let i = 0; i < 10; i++) {
    queue.add(record(5_000 + i, { owner: 'small', partition: i % 4 }));
    const sends = [queue.take(400), queue.take(400)].flat();
    expect(sends.some(({ records }) => ids(records).includes(5_000 + i))).toBe(true);
    expect(sends.every(({ bytes }) => bytes <= 150)).toBe(true);
  }
});

test('what is put first goes before what waits, and takes nothing more', () => {
  const queue = new ProduceQueue(100);
  queue.add(record(3));
  queue.addFirst([record(1), record(2)]);
  queue.add(record(4));
  expect(drain(queue, 1_000).map(ids)).toEqual([
    [1, 2],
    [3, 4],
  ]);
  queue.addFirst([record(5)]);
  queue.add(record(6));
  expect(drain(queue, 1_000).map(ids)).toEqual([[5], [6]]);
});

test('what nobody waits for is not sent', () => {
  const queue = new ProduceQueue(100);
  queue.add(record(1, { cancelled: true }));
  queue.add(record(2));
  queue.add(record(3, { cancelled: true, partition: 1 }));
  expect(drain(queue, 1_000).flatMap(ids)).toEqual([2]);
});

test('all that waits for one partition can be taken back, in its order, and nothing of others', () => {
  const queue = new ProduceQueue(25);
  const records = Array.from({ length: 9 }, (_, i) => record(i, { partition: i % 2 }));
  for (const one of records) queue.add(one);
  expect(ids(queue.takeAll({ topic: 't', partition: 0 }))).toEqual([0, 2, 4, 6, 8]);
  expect(queue.takeAll({ topic: 't', partition: 0 })).toEqual([]);
  expect(queue.size).toBe(4);
  expect(ids(drain(queue, 1_000).flat())).toEqual([1, 3, 5, 7]);
  expect(queue.isEmpty).toBe(true);
});
