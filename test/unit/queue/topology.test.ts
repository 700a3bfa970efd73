import fc from 'fast-check';
import {
  DELAY_SHAPE,
  DELAY_UNIT_MS,
  MAX_DELAY_MS,
  routeFor,
} from '../../../src/services/queue/rabbitmq/delay-levels.js';
import { describeTopology, type Topology } from '../../../src/services/queue/rabbitmq/topology.js';

/** Whether a topic pattern (`*` one word, `#` any number) fits a routing key; RabbitMQ's rule. */
function fits(pattern: readonly string[], key: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return key.length === 0;
  if (first === '#') return fits(rest, key) || (key.length > 0 && fits(pattern, key.slice(1)));
  return key.length > 0 && (first === '*' || first === key[0]) && fits(rest, key.slice(1));
}

/** Follows a message as RabbitMQ would: every arrival in a queue that does not expire, with the time it took. */
function arrivals(topology: Topology, exchange: string, routingKey: string): { queue: string; ms: number }[] {
  const ttl = new Map(
    topology.queues.map((q) => [q.name, q.arguments['x-message-ttl'] as number | undefined]),
  );
  const next = new Map(topology.queues.map((q) => [q.name, q.arguments['x-dead-letter-exchange'] as string]));
  const fanouts = new Set(topology.exchanges.filter((e) => e.type === 'fanout').map((e) => e.name));
  const found: { queue: string; ms: number }[] = [];
  const enter = (at: string, ms: number): void => {
    const matching = topology.bindings.filter(
      (b) => b.source === at && (fanouts.has(at) || fits(b.pattern.split('.'), routingKey.split('.'))),
    );
    if (matching.length === 0) {
      const alternate = topology.exchanges.find((e) => e.name === at)?.alternate;
      if (alternate !== undefined) enter(alternate, ms);
    }
    for (const { kind, destination } of matching) {
      const wait = ttl.get(destination);
      if (kind === 'exchange') enter(destination, ms);
      else if (wait === undefined) found.push({ queue: destination, ms });
      else enter(next.get(destination) as string, ms + wait);
    }
  };
  // the nameless exchange: the key is a queue's name
  if (exchange === '') return [{ queue: routingKey, ms: 0 }];
  enter(exchange, 0);
  return found;
}

it.each([
  { base: 2, levels: 7 },
  { base: 5, levels: 3 },
])(
  'brings every delay of a small layout ($base digits, $levels levels) to the work queue exactly once, exactly after its time',
  (shape) => {
    const topology = describeTopology('p', shape);
    for (let units = 0; units < shape.base ** shape.levels; units++) {
      const { exchange, routingKey } = routeFor(topology.names, units * DELAY_UNIT_MS, shape);
      expect(arrivals(topology, exchange, routingKey)).toEqual([
        { queue: topology.names.work, ms: units * DELAY_UNIT_MS },
      ]);
    }
  },
);

it('brings any delay of the real layout to the work queue once, never early and less than one unit late', () => {
  const topology = describeTopology('portico');
  fc.assert(
    fc.property(fc.integer({ min: 0, max: MAX_DELAY_MS }), (delayMs) => {
      const { exchange, routingKey } = routeFor(topology.names, delayMs);
      const [arrival, ...more] = arrivals(topology, exchange, routingKey);
      expect(more).toEqual([]);
      expect(arrival?.queue).toBe(topology.names.work);
      expect((arrival?.ms ?? -1) - delayMs).toBeGreaterThanOrEqual(0);
      expect((arrival?.ms ?? -1) - delayMs).toBeLessThan(DELAY_UNIT_MS);
      expect(Buffer.byteLength(routingKey)).toBeLessThan(255);
    }),
  );
});

it('cuts a delay that is longer than the layout reaches; the rest is walked in another round', () => {
  const topology = describeTopology('p');
  expect(MAX_DELAY_MS).toBeGreaterThan(48 * 86_400_000);
  const { exchange, routingKey } = routeFor(topology.names, 400 * 86_400_000);
  expect(arrivals(topology, exchange, routingKey)).toEqual([
    { queue: topology.names.work, ms: MAX_DELAY_MS },
  ]);
});

it('takes a negative delay as none', () => {
  const { names } = describeTopology('p');
  expect(routeFor(names, -5)).toEqual(routeFor(names, 0));
});

it('tells when a queue is gone: what it should have held arrives as unrouted', () => {
  const { base } = DELAY_SHAPE;
  const whole = describeTopology('p');
  const { names } = whole;
  const digits = [3, 31, 0, 7];
  const units = digits.reduce((sum, digit, level) => sum + digit * base ** level, 0);
  const { exchange, routingKey } = routeFor(names, units * DELAY_UNIT_MS);
  for (const gone of [names.work, names.wait(0, 3), names.wait(1, 31), names.wait(3, 7)]) {
    const bindings = whole.bindings.filter(({ destination }) => destination !== gone);
    const found = arrivals({ ...whole, bindings }, exchange, routingKey);
    expect(found.map(({ queue }) => queue)).toEqual([names.unrouted]);
  }
});

it('writes a ticket no more often than its delay has digits, and names only those in its key', () => {
  const { names } = describeTopology('p');
  expect(routeFor(names, 3_875).routingKey).toBe('31');
  expect(routeFor(names, 4_000).routingKey).toBe('0.1');
  expect(routeFor(names, 3_600_000)).toEqual({ exchange: names.level(2), routingKey: '0.4.28' });
});

it('binds queues that survive a restart, keep what they hold, and forward no other key', () => {
  const { queues, exchanges, names } = describeTopology('p');
  expect(queues).toHaveLength(158);
  expect(new Set(queues.map(({ name }) => name)).size).toBe(158);
  expect(new Set(exchanges.map(({ name }) => name)).size).toBe(8);
  for (const queue of queues) {
    expect(queue.arguments['x-queue-type']).toBe('quorum');
    expect(queue.arguments).not.toHaveProperty('x-dead-letter-routing-key');
    if (queue.arguments['x-message-ttl'] !== undefined)
      expect(queue.arguments).not.toHaveProperty('x-dead-letter-strategy');
  }
  expect(queues.find(({ name }) => name === names.work)?.arguments['x-delivery-limit']).toBeGreaterThan(
    1_000,
  );
});
