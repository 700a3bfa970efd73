import type { BindingDeclaration, Declarations, QueueDeclaration } from './declarations.js';
import type { TopologyNames } from './topology-names.js';

/** The shortest delay; every delay is rounded up to a multiple of it. */
export const DELAY_UNIT_MS = 125;

/** A delay is a number of `levels` digits, in units; what is longer is walked in several rounds. */
export interface DelayShape {
  readonly base: number;
  readonly levels: number;
}

/** One level reaches 4 s, two 2 min, three 68 min, four 36 h, five 48 days. */
export const DELAY_SHAPE: DelayShape = { base: 32, levels: 5 };
export const MAX_DELAY_MS = (DELAY_SHAPE.base ** DELAY_SHAPE.levels - 1) * DELAY_UNIT_MS;

/**
 * A ticket whose delay has the digit d at level L waits d * base^L units in the queue of that digit and is then
 * dead-lettered to the exchange of the level below; where the digit is 0 the exchange hands it straight on. Below level
 * 0 stands the delivery exchange. One TTL a queue, so nothing waits behind what is due later. (NServiceBus does so with
 * bits. A ticket is written once for each digit that is not 0, and every write costs RabbitMQ: with base 32 it spent
 * 270 instead of 1,070 µs on a ticket of 20 to 30 s.)
 */
export function delayLevels(names: TopologyNames, { base, levels }: DelayShape = DELAY_SHAPE): Declarations {
  const all = Array.from({ length: levels }, (_, level) => level);
  const digits = Array.from({ length: base - 1 }, (_, index) => index + 1);
  return {
    // a ticket that no queue takes tells that one is gone
    exchanges: all.map((level) => ({
      name: names.level(level),
      type: 'topic',
      alternate: names.unrouted,
    })),
    queues: all.flatMap((level) => digits.map((digit) => waitQueue(names, level, digit, base))),
    bindings: all.flatMap((level) => levelBindings(names, level, digits)),
  };
}

function below(names: TopologyNames, level: number): string {
  return level === 0 ? names.delivery : names.level(level - 1);
}

/**
 * At most once: RabbitMQ may drop a ticket on its way, which the sweeper finds. "at-least-once" would keep it and hold up
 * its whole queue for three minutes when 32 have nowhere to go, as after each restart (see sweeper.ts).
 */
function waitQueue(names: TopologyNames, level: number, digit: number, base: number): QueueDeclaration {
  return {
    name: names.wait(level, digit),
    arguments: {
      'x-queue-type': 'quorum',
      'x-message-ttl': digit * base ** level * DELAY_UNIT_MS,
      'x-dead-letter-exchange': below(names, level),
    },
  };
}

/** The lowest digit is the first word: a key need not be longer than its delay, and matching costs by the word. */
function levelBindings(names: TopologyNames, level: number, digits: readonly number[]): BindingDeclaration[] {
  const lower = '*.'.repeat(level);
  const source = names.level(level);
  return [
    ...digits.map((digit) => ({
      kind: 'queue' as const,
      destination: names.wait(level, digit),
      source,
      pattern: `${lower}${digit}.#`,
    })),
    { kind: 'exchange', destination: below(names, level), source, pattern: `${lower}0.#` },
  ];
}

/**
 * Where a ticket is published so that it reaches the work queue after at least `delayMs` (at most `MAX_DELAY_MS` count).
 * Without a delay that is the queue itself, by the nameless exchange; with one, the exchange of its highest digit.
 */
export function routeFor(
  names: TopologyNames,
  delayMs: number,
  { base, levels }: DelayShape = DELAY_SHAPE,
): { exchange: string; routingKey: string } {
  let units = Math.min(base ** levels - 1, Math.ceil(delayMs / DELAY_UNIT_MS));
  if (units <= 0) return { exchange: '', routingKey: names.work };
  const digits: number[] = [];
  for (; units > 0; units = Math.floor(units / base)) digits.push(units % base);
  return { exchange: names.level(digits.length - 1), routingKey: digits.join('.') };
}
