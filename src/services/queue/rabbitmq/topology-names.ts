/** Part of every name: objects of another layout can then never be taken for this one's (RabbitMQ refuses to change them). */
const LAYOUT = 'v4';

/** What the service's exchanges and queues in RabbitMQ are called. */
export interface TopologyNames {
  readonly work: string;
  /** The dead-letter exchange of the work queue, and the queue behind it. */
  readonly dead: string;
  readonly unrouted: string;
  readonly delivery: string;
  /** The exchange that sends a ticket to the queue of its digit of this level. */
  readonly level: (level: number) => string;
  /** The queue of a digit above 0. */
  readonly wait: (level: number, digit: number) => string;
}

export function topologyNames(prefix: string): TopologyNames {
  const name = (part: string) => `${prefix}-${LAYOUT}-${part}`;
  return {
    work: name('work'),
    dead: name('dead'),
    unrouted: name('unrouted'),
    delivery: name('delivery'),
    level: (level) => name(`level-${level}`),
    wait: (level, digit) => name(`wait-${level}-${String(digit).padStart(2, '0')}`),
  };
}
