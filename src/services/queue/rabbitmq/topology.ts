import type { Declarations, QueueDeclaration } from './declarations.js';
import { DELAY_SHAPE, delayLevels } from './delay-levels.js';
import { type TopologyNames, topologyNames } from './topology-names.js';

/** Quorum queues of RabbitMQ 4 drop a message after 20 returns unless told otherwise; -1 would drop at once on 3.10. */
const DELIVERY_LIMIT = 1_000_000;

/** Tickets whose queue is gone only tell that it is; Postgres knows what is due. */
const MAX_UNROUTED = 10_000;

/** Every object in RabbitMQ that the service needs. */
export interface Topology extends Declarations {
  readonly names: TopologyNames;
}

/** The queues of what is due and of what is dead, and before them the levels where delayed tickets wait. */
export function describeTopology(prefix: string, shape = DELAY_SHAPE): Topology {
  const names = topologyNames(prefix);
  const levels = delayLevels(names, shape);
  return {
    names,
    exchanges: [
      { name: names.unrouted, type: 'fanout' },
      ...[names.dead, names.delivery].map((name) => ({
        name,
        type: 'fanout' as const,
        alternate: names.unrouted,
      })),
      ...levels.exchanges,
    ],
    queues: [...lastingQueues(names), ...levels.queues],
    bindings: [
      ...[names.unrouted, names.dead].map((name) => ({
        kind: 'queue' as const,
        destination: name,
        source: name,
        pattern: '#',
      })),
      { kind: 'queue', destination: names.work, source: names.delivery, pattern: '#' },
      ...levels.bindings,
    ],
  };
}

/** Those in which tickets stay until somebody takes them. */
function lastingQueues(names: TopologyNames): QueueDeclaration[] {
  return [
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
        // a rejected ticket stays until the dead-letter queue has confirmed it; this asks for reject-publish
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
  ];
}
