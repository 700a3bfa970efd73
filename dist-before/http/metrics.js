import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { RequestHistogram } from './request-histogram.js';
/** One Prometheus registry a gateway (not prom-client's global one, so several gateways may live in a process). */
export class Metrics {
    registry = new Registry();
    requests = new RequestHistogram();
    constructor() {
        collectDefaultMetrics({ register: this.registry });
        this.registry.registerMetric(this.requests);
    }
    countInFlight(current) {
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
    reportBackends(states) {
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
//# sourceMappingURL=metrics.js.map