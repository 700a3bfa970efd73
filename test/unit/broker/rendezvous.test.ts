import fc from 'fast-check';
import { byWeight } from '../../../src/services/broker/peers/rendezvous.js';

const candidates = fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 8 });

test('everybody finds the same order, in whatever order the candidates are known', () => {
  fc.assert(
    fc.property(candidates, fc.string(), (ids, key) => {
      const order = byWeight(ids, key);
      expect([...order].sort()).toEqual([...ids].sort());
      expect(byWeight([...ids].reverse(), key)).toEqual(order);
    }),
  );
});

test('who leaves takes nothing from the others', () => {
  fc.assert(
    fc.property(candidates, fc.string(), fc.nat(7), (ids, key, at) => {
      const gone = ids[at % ids.length];
      const left = ids.filter((id) => id !== gone);
      expect(byWeight(left, key)).toEqual(byWeight(ids, key).filter((id) => id !== gone));
    }),
  );
});

test('keys are spread evenly', () => {
  const owners = Array.from({ length: 3_000 }, (_, i) => byWeight(['a', 'b', 'c'], `key ${i}`)[0]);
  for (const id of ['a', 'b', 'c'])
    expect(Math.abs(owners.filter((owner) => owner === id).length - 1_000)).toBeLessThan(150);
});
