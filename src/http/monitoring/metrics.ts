import { AggregatorRegistry, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client';
import type { MetricRegistry, MetricSource } from '../../lib/metric-source.js';
import type { HealthState } from './health.js';
import { RequestHistogram } from './request-histogram.js';

/** All metrics of one process at one moment, as plain data. */
export type MetricsSnapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** One Prometheus registry a gateway (not prom-client's global one, so several gateways may live in a process). */
export class Metrics implements MetricRegistry {
  readonly registry = new Registry();
  readonly requests = new RequestHistogram();

  /** @param gather the snapshots of all processes of this gateway, this one included, where there are several */
  constructor(private readonly gather?: () => Promise<readonly MetricsSnapshot[]>) {
    collectDefaultMetrics({ register: this.registry });
    this.add(this.requests);
    // prom-client leaves it out of a sum of processes
    this.aggregateBy('process_start_time_seconds', 'min');
    new Gauge({
      name: 'portico_workers',
      help: 'Processes that serve requests.',
      registers: [this.registry],
    }).set(1);
  }

  /** @param version of the gateway */
  reportBuild(version: string, node: string): void {
    new Gauge({
      name: 'portico_build_info',
      help: 'Always 1; the labels tell what runs.',
      // of several processes one is enough
      aggregator: 'max',
      labelNames: ['version', 'node'],
      registers: [this.registry],
    }).set({ version, node }, 1);
  }

  add(source: MetricSource): void {
    const { name, help, type, aggregator = 'sum' } = source;
    // all that the registry asks of a metric
    const metric = {
      name,
      type,
      aggregator,
      get: async () => ({ name, help, type, aggregator, values: source.collect() }),
    };
    this.registry.registerMetric(metric as unknown as Metric);
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  /** What Prometheus reads, of all processes. */
  async text(): Promise<string> {
    if (this.gather === undefined) return this.registry.metrics();
    return AggregatorRegistry.aggregate([...(await this.gather())]).metrics();
  }

  /** Of this process alone. */
  snapshot(): Promise<MetricsSnapshot> {
    return this.registry.getMetricsAsJSON();
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

  countReplyBytes(current: () => number): void {
    new Gauge({
      name: 'portico_http_reply_bytes_waiting',
      help: 'Bytes of replies and streams that wait for their clients; http.replyBufferBytes bounds them.',
      registers: [this.registry],
      collect() {
        this.set(current());
      },
    });
  }

  /** @param end in s since 1970; `undefined` without TLS */
  reportCertificate(end: () => number | undefined): void {
    this.add({
      name: 'portico_http_certificate_expires_seconds',
      help: 'When the certificate of the ports ends, as a Unix time; of several processes the first.',
      type: 'gauge',
      aggregator: 'min',
      collect: () => {
        const value = end();
        return value === undefined ? [] : [{ labels: {}, value }];
      },
    });
  }

  /** @param states asked at each scrape: 1 where the backend answers */
  reportBackends(states: () => Promise<readonly HealthState[]>): void {
    new Gauge({
      name: 'portico_backend_up',
      help: 'Whether the backend of an instance answers (1) or not (0).',
      // of several processes, one that cannot reach it is enough
      aggregator: 'min',
      labelNames: ['service', 'instance', 'backend'],
      registers: [this.registry],
      async collect() {
        for (const { service, instance, backend, up } of await states()) {
          this.set({ service, instance, backend }, up ? 1 : 0);
        }
      },
    });
  }

  /** Its counters and histograms alone: without asking backends, which may be gone. */
  counts(): Promise<MetricsSnapshot> {
    const metrics = this.registry.getMetricsAsArray().filter(isCounting);
    return Promise.all(metrics.map((metric) => (metric as unknown as { get(): Promise<Snapshot> }).get()));
  }

  private aggregateBy(name: string, aggregator: MetricsSnapshot[number]['aggregator']): void {
    const metric = this.registry.getSingleMetric(name);
    if (metric !== undefined) Object.assign(metric, { aggregator });
  }
}

type Snapshot = MetricsSnapshot[number];

/** What only grows, in contrast to what holds for the moment. prom-client writes types in lower case, which its declarations do not know. */
function isCounting({ type }: Pick<Snapshot, 'type'>): boolean {
  return /^(counter|histogram)$/.test(String(type));
}

/** Counters and histograms of several snapshots, added up. */
export function sumOfCounts(snapshots: readonly MetricsSnapshot[]): Promise<MetricsSnapshot> {
  return AggregatorRegistry.aggregate(snapshots.map((each) => each.filter(isCounting))).getMetricsAsJSON();
}
