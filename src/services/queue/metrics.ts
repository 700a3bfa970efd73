import { LatencyHistogram } from '../../lib/latency-histogram.js';
import type { MetricRegistry, MetricSample } from '../../lib/metric-source.js';
import type { PlacesStats } from './destinations/attempts.js';
import type { Conclusion } from './message/conclusion.js';
import type { Backlog } from './store/backlog-counter.js';

const LATENESS = 'portico_queue_lateness_seconds';
const ATTEMPT = 'portico_queue_attempt_seconds';

type Outcome = 'delivered' | 'retried' | 'dead';

/** What the queue counts. */
export class QueueMetrics {
  private published = 0;
  private inFlight = 0;
  private readonly ended: Record<Outcome, number> = { delivered: 0, retried: 0, dead: 0 };
  private readonly replies = new Map<string, number>();
  private readonly lateness = new LatencyHistogram();
  private readonly durations = new LatencyHistogram();

  /** @param backlog as far as it has been counted */
  constructor(registry: MetricRegistry, places: () => PlacesStats, backlog: () => Backlog | undefined) {
    addPlaces(registry, places);
    addBacklog(registry, backlog);
    registry.add({
      name: 'portico_queue_published_total',
      help: 'Messages accepted from senders and schedules; callbacks are not among them.',
      type: 'counter',
      collect: () => [{ labels: {}, value: this.published }],
    });
    registry.add({
      name: 'portico_queue_outcomes_total',
      help: 'Attempts by what followed: delivered, retried (later) or dead.',
      type: 'counter',
      collect: () => Object.entries(this.ended).map(([outcome, value]) => ({ labels: { outcome }, value })),
    });
    registry.add({
      name: 'portico_queue_responses_total',
      help: 'Attempts by class of the status that the destination answered; none: no response.',
      type: 'counter',
      collect: () => [...this.replies].map(([status, value]) => ({ labels: { status }, value })),
    });
    registry.add({
      name: 'portico_queue_attempts_in_flight',
      help: 'Requests to destinations under way.',
      type: 'gauge',
      collect: () => [{ labels: {}, value: this.inFlight }],
    });
    registry.add({
      name: LATENESS,
      help: 'From the time an attempt was due to its beginning.',
      type: 'histogram',
      collect: () => this.lateness.samples(LATENESS, {}),
    });
    registry.add({
      name: ATTEMPT,
      help: 'How long attempts took.',
      type: 'histogram',
      collect: () => this.durations.samples(ATTEMPT, {}),
    });
  }

  accepted(count: number): void {
    this.published += count;
  }

  /** An attempt begins. @param lateMs since it was due. @returns to be called when it ends */
  attempt(lateMs: number): () => void {
    this.lateness.observe(Math.max(0, lateMs) / 1_000);
    this.inFlight += 1;
    const startedAt = performance.now();
    return () => {
      this.inFlight -= 1;
      this.durations.observe((performance.now() - startedAt) / 1_000);
    };
  }

  /** An outcome is written. */
  concluded({ result, decision }: Conclusion): void {
    this.ended[decision.kind === 'retry' ? 'retried' : decision.kind] += 1;
    const status = result.kind === 'response' ? `${Math.floor(result.status / 100)}xx` : 'none';
    this.replies.set(status, (this.replies.get(status) ?? 0) + 1);
  }
}

/** Of several processes one counts, and any other knows nothing. */
function addBacklog(registry: MetricRegistry, backlog: () => Backlog | undefined): void {
  const add = (name: string, help: string, read: (backlog: Backlog) => readonly MetricSample[]) =>
    registry.add({
      name,
      help: `${help} Of all gateways, the same from each; counted step by step, from every 10 s to minutes for millions.`,
      type: 'gauge',
      aggregator: 'max',
      collect: () => {
        const counted = backlog();
        return counted === undefined ? [] : read(counted);
      },
    });
  add(
    'portico_queue_messages',
    'Messages that are not done: waiting for their time, due, active (an attempt is under way), waiting for their turn in a queue (order) or under a flow-control key (flow), or failing.',
    ({ messages }) => Object.entries(messages).map(([state, value]) => ({ labels: { state }, value })),
  );
  add(
    'portico_queue_oldest_due_seconds',
    'How long the message has been due that is due for the longest and whose attempt has not begun.',
    ({ oldestDueSeconds }) => [{ labels: {}, value: oldestDueSeconds }],
  );
  add('portico_queue_dead_letters', 'Dead letters that are kept.', ({ deadLetters }) => [
    { labels: {}, value: deadLetters },
  ]);
}

function addPlaces(registry: MetricRegistry, stats: () => PlacesStats): void {
  registry.add({
    name: 'portico_queue_attempts_waiting',
    help: 'Requests to destinations that wait for their answer and have given their place to others.',
    type: 'gauge',
    collect: () => [{ labels: {}, value: stats().waiting }],
  });
  registry.add({
    name: 'portico_queue_circuits',
    help: 'Destinations whose circuit is open (messages are kept back) or half-open (a probe is under way).',
    type: 'gauge',
    collect: () => {
      const { open, halfOpen } = stats();
      return [
        { labels: { state: 'open' }, value: open },
        { labels: { state: 'half-open' }, value: halfOpen },
      ];
    },
  });
  registry.add({
    name: 'portico_queue_circuits_opened_total',
    help: 'How often a circuit opened.',
    type: 'counter',
    collect: () => [{ labels: {}, value: stats().opened }],
  });
  registry.add({
    name: 'portico_queue_turned_away_total',
    help: 'How often a message was put off because its destination or key had its share (share) or an open circuit (circuit).',
    type: 'counter',
    collect: () =>
      Object.entries(stats().turnedAway).map(([reason, value]) => ({ labels: { reason }, value })),
  });
  registry.add({
    name: 'portico_queue_not_attempted_total',
    help: 'Attempts that failed without being made, because the circuit was open for as long as they might have waited.',
    type: 'counter',
    collect: () => [{ labels: {}, value: stats().rejected }],
  });
}
