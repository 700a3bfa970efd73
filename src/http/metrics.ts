import { collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client';
import type { MetricRegistry, MetricSource } from '../lib/metric-source.js';
import type { HealthState } from './health.js';
import { RequestHistogram } from './request-histogram.js';

/** One Prometheus registry a gateway (not prom-client's global one, so several gateways may live in a process). */
export class Metrics implements MetricRegistry {
  readonly registry = new Registry();
  readonly requests = new RequestHistogram();

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    this.add(this.requests);
  }

  add(source: MetricSource): void {
    const { name, help, type } = source;
    // all that the registry asks of a metric
    const metric = {
      name,
      get: async () => ({ name, help, type, aggregator: 'sum', values: source.collect() }),
    };
    this.registry.registerMetric(metric as unknown as Metric);
  }

  countInFlight(current: () => number): void {
    new Gauge({
      name: 'portico_http_requests_in_flight',
      help: 'Requests being worked on.',
      registers: [this.registry],
      collect() {
        this.set(current());
      },
    });
  }

  countStreams(current: () => number): void {
    new Gauge({
      name: 'portico_http_streams_open',
      help: 'Replies that go on until the client or the gateway ends them.',
      registers: [this.registry],
      collect() {
        this.set(current());
      },
    });
  }

  /** @param states asked at each scrape: 1 where the backend answers */
  reportBackends(states: () => Promise<readonly HealthState[]>): void {
    new Gauge({
      name: 'portico_backend_up',
      help: 'Whether the backend of an instance answers (1) or not (0).',
      labelNames: ['service', 'instance', 'backend'],
      registers: [this.registry],
      async collect() {
        for (const { service, instance, backend, up } of await states()) {
          this.set({ service, instance, backend }, up ? 1 : 0);
        }
      },
    });
  }
}
