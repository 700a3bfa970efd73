import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export type Observe = (seconds: number) => void;

/** One Prometheus registry a gateway (not prom-client's global one, so several gateways may live in a process). */
export class Metrics {
  readonly registry = new Registry();
  private readonly requests = new Histogram({
    name: 'portico_http_request_duration_seconds',
    help: 'Time from the request head to the end of the reply.',
    labelNames: ['operation', 'status'],
    buckets: SECONDS,
    registers: [this.registry],
  });
  private readonly observers = new Map<string, Map<number, Observe>>();

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  observeRequest(operationId: string, status: number, seconds: number): void {
    let byStatus = this.observers.get(operationId);
    if (byStatus === undefined) {
      byStatus = new Map();
      this.observers.set(operationId, byStatus);
    }
    let observe = byStatus.get(status);
    if (observe === undefined) {
      const child = this.requests.labels(operationId, String(status));
      observe = (value) => child.observe(value);
      byStatus.set(status, observe);
    }
    observe(seconds);
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

  /** @param states asked at each scrape: 1 where the backend answers */
  reportBackends(
    states: () => Promise<readonly { service: string; instance: string; backend: string; up: boolean }[]>,
  ): void {
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
