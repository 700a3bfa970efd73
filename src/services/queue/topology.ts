import type { Channel } from './client.js';

/** The shortest delay; every delay is rounded up to a multiple of it. */
export const DELAY_UNIT_MS = 125;
/** Level L holds a token for 2^L units, so 25 levels reach 48 days; a longer delay is walked in several rounds. */
export const DELAY_LEVELS = 25;
export const MAX_DELAY_MS = (2 ** DELAY_LEVELS - 1) * DELAY_UNIT_MS;

/** Part of every name: objects of another layout can then never be taken for this one's (RabbitMQ refuses to change them). */
const LAYOUT = 'v2';

/** Quorum queues of RabbitMQ 4 drop a message after 20 returns unless told otherwise; -1 would drop at once on 3.10. */
const DELIVERY_LIMIT = 1_000_000;

/** Tokens whose queue is gone only tell that it is; Postgres knows what is due. */
const MAX_UNROUTED = 10_000;

export interface TopologyNames {
  readonly work: string;
  /** The dead-letter exchange of the work queue, and the queue behind it. */
  readonly dead: string;
  readonly unrouted: string;
  readonly delivery: string;
  readonly level: (level: number) => string;
  /** The exchange that puts a token into a level's queue without looking at its key. */
  readonly entrance: (level: number) => string;
}

export interface ExchangeDeclaration {
  readonly name: string;
  readonly type: 'topic' | 'fanout';
  readonly alternate?: string;
}

export interface QueueDeclaration {
  readonly name: string;
  readonly arguments: Readonly<Record<string, string | number>>;
}

export interface BindingDeclaration {
  readonly kind: 'queue' | 'exchange';
  readonly destination: string;
  readonly source: string;
  readonly pattern: string;
}

/** Every object in RabbitMQ that the service needs. */
export interface Topology {
  readonly names: TopologyNames;
  readonly exchanges: readonly ExchangeDeclaration[];
  readonly queues: readonly QueueDeclaration[];
  readonly bindings: readonly BindingDeclaration[];
}

/**
 * The layout: a token whose delay has bit L set waits 2^L units in the queue of level L and is then dead-lettered to
 * the exchange of the level below; where the bit is 0 the exchange hands it straight on. Below level 0 stands the
 * delivery exchange. (The binary levels are NServiceBus' idea; they need no plugin and only one TTL a queue.)
 */
export function describeTopology(prefix: string, levels = DELAY_LEVELS): Topology {
  const names = topologyNames(prefix);
  const all = Array.from({ length: levels }, (_, level) => level);
  return {
    names,
    exchanges: [
      { name: names.unrouted, type: 'fanout' },
      ...[names.dead, names.delivery, ...all.map(names.entrance)].map((name) => ({
        name,
        type: 'fanout' as const,
        alternate: names.unrouted,
      })),
      // tokens that no queue takes would stall the dead-letter worker of the level above for good (32 of them do)
      ...all.map(names.level).map((name) => ({
        name,
        type: 'topic' as const,
        alternate: names.unrouted,
      })),
    ],
    queues: [
      {
        name: names.unrouted,
        arguments: { 'x-queue-type': 'quorum', 'x-max-length': MAX_UNROUTED, 'x-overflow': 'drop-head' },
      },
      {
        name: names.work,
        arguments: {
          'x-queue-type': 'quorum',
          'x-delivery-limit': DELIVERY_LIMIT,
          'x-dead-letter-exchange': names.dead,
          // a rejected token stays until the dead-letter queue has confirmed it; this asks for reject-publish
          'x-dead-letter-strategy': 'at-least-once',
          'x-overflow': 'reject-publish',
        },
      },
      {
        name: names.dead,
        arguments: {
          'x-queue-type': 'quorum',
          'x-delivery-limit': DELIVERY_LIMIT,
          'x-dead-letter-exchange': names.unrouted,
        },
      },
      ...all.map((level) => levelQueue(names, level)),
    ],
    bindings: [
      { kind: 'queue', destination: names.unrouted, source: names.unrouted, pattern: '#' },
      { kind: 'queue', destination: names.dead, source: names.dead, pattern: '#' },
      { kind: 'queue', destination: names.work, source: names.delivery, pattern: '#' },
      ...all.map((level) => ({
        kind: 'queue' as const,
        destination: names.level(level),
        source: names.entrance(level),
        pattern: '#',
      })),
      ...all.flatMap((level) => levelBindings(names, level)),
    ],
  };
}

function topologyNames(prefix: string): TopologyNames {
  const name = (part: string) => `${prefix}-${LAYOUT}-${part}`;
  return {
    work: name('work'),
    dead: name('dead'),
    unrouted: name('unrouted'),
    delivery: name('delivery'),
    level: (level) => name(`level-${String(level).padStart(2, '0')}`),
    entrance: (level) => name(`enter-${String(level).padStart(2, '0')}`),
  };
}

function below(names: TopologyNames, level: number): string {
  return level === 0 ? names.delivery : names.level(level - 1);
}

function levelQueue(names: TopologyNames, level: number): QueueDeclaration {
  return {
    name: names.level(level),
    // at-least-once keeps the token here until the next queue has confirmed it; it asks for reject-publish
    arguments: {
      'x-queue-type': 'quorum',
      'x-message-ttl': 2 ** level * DELAY_UNIT_MS,
      'x-overflow': 'reject-publish',
      'x-dead-letter-strategy': 'at-least-once',
      'x-dead-letter-exchange': below(names, level),
    },
  };
}

/** The lowest bit is the first word: a key need not be longer than its delay, and matching costs by the word. */
function levelBindings(names: TopologyNames, level: number): BindingDeclaration[] {
  const lowerBits = '*.'.repeat(level);
  const source = names.level(level);
  return [
    { kind: 'queue', destination: names.level(level), source, pattern: `${lowerBits}1.#` },
    { kind: 'exchange', destination: below(names, level), source, pattern: `${lowerBits}0.#` },
  ];
}

/**
 * Where a token is published so that it reaches the work queue after at least `delayMs` (at most `MAX_DELAY_MS` count).
 * Without a delay that is the queue itself, by the nameless exchange; with one, the queue of its highest bit by a fanout
 * exchange. Matching a key of 26 words at two topic exchanges costs RabbitMQ 3.10 five times as much (2,600 instead of
 * 14,000 confirms a second); later hops need it, but senders do not wait for them.
 */
export function routeFor(
  names: TopologyNames,
  delayMs: number,
  levels = DELAY_LEVELS,
): { exchange: string; routingKey: string } {
  const units = Math.min(2 ** levels - 1, Math.ceil(delayMs / DELAY_UNIT_MS));
  if (units <= 0) return { exchange: '', routingKey: names.work };
  const bits = [...units.toString(2)].reverse();
  return {
    exchange: names.entrance(Math.floor(Math.log2(units))),
    routingKey: bits.join('.'),
  };
}

/** Creates what is missing. @throws when an object of that name exists with other properties (406) */
export async function declareTopology(channel: Channel, topology: Topology): Promise<void> {
  // the channel answers in order, so all are asked at once: 60 round trips become one
  await Promise.all([
    ...topology.exchanges.map(({ name, type, alternate }) =>
      channel.assertExchange(name, type, {
        durable: true,
        ...(alternate === undefined ? {} : { alternateExchange: alternate }),
      }),
    ),
    ...topology.queues.map((queue) =>
      channel.assertQueue(queue.name, { durable: true, arguments: queue.arguments }),
    ),
    ...topology.bindings.map(({ kind, destination, source, pattern }) =>
      kind === 'queue'
        ? channel.bindQueue(destination, source, pattern)
        : channel.bindExchange(destination, source, pattern),
    ),
  ]);
}
