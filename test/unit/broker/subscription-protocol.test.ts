import fc from 'fast-check';
import { deal, type Subscription } from '../../../src/services/broker/group/subscription-protocol.js';

const topics = fc.constantFrom('a', 'b', 'c', 'constructor');
const subscriptions = fc
  .uniqueArray(fc.string({ minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 8 })
  .chain((members) =>
    fc.tuple(
      ...members.map((member) =>
        fc
          .uniqueArray(topics, { minLength: 1 })
          .map((subscribed): Subscription => ({ member, topics: subscribed })),
      ),
    ),
  );
const counts = fc
  .dictionary(topics, fc.integer({ min: 1, max: 20 }))
  .map((found) => new Map(Object.entries(found)));

test('every partition of a topic goes to exactly one of its subscribers', () => {
  fc.assert(
    fc.property(subscriptions, counts, (members, partitionCounts) => {
      const dealt = deal(members, partitionCounts);
      for (const [topic, count] of partitionCounts) {
        const subscribers = members.filter((one) => one.topics.includes(topic)).map(({ member }) => member);
        const given = [...dealt].flatMap(([member, assigned]) =>
          (assigned.get(topic) ?? []).map((partition) => ({ member, partition })),
        );
        expect(given.every(({ member }) => subscribers.includes(member))).toBe(true);
        const expected = subscribers.length === 0 ? [] : Array.from({ length: count }, (_, i) => i);
        expect(given.map(({ partition }) => partition).sort((a, b) => a - b)).toEqual(expected);
      }
    }),
  );
});

test('members with the same topics get numbers of partitions that differ by at most one', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), counts, (count, partitionCounts) => {
      const members = Array.from({ length: count }, (_, i) => ({
        member: `m${i}`,
        topics: [...partitionCounts.keys()],
      }));
      const loads = [...deal(members, partitionCounts).values()].map(
        (assigned) => [...assigned.values()].flat().length,
      );
      expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
    }),
  );
});

test('the order of members makes no difference', () => {
  fc.assert(
    fc.property(subscriptions, counts, (members, partitionCounts) => {
      expect(deal([...members].reverse(), partitionCounts)).toEqual(deal(members, partitionCounts));
    }),
  );
});
