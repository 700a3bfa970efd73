import { requestIds } from './request-id.js';
import { securityHeaders } from './security-headers.js';
/** How often deadlines are looked at, in ms: one timer for all requests instead of one each. */
const SWEEP_MS = 200;
/** What every request of this process shares: settings, metrics, the set of open exchanges and the sweep of their deadlines. */
export class HttpCore {
    settings;
    metrics;
    log;
    now;
    constantHeaders = securityHeaders();
    nextRequestId = requestIds();
    /** Readiness is off and replies ask the client to close its connection. */
    stopping = false;
    open = new Set();
    sweeper;
    constructor(settings, metrics, log, 
    /** Monotonic milliseconds. */
    now = () => performance.now()) {
        this.settings = settings;
        this.metrics = metrics;
        this.log = log;
        this.now = now;
        this.sweeper = setInterval(() => this.sweep(), SWEEP_MS);
        this.sweeper.unref();
        metrics.countInFlight(() => this.open.size);
    }
    get inFlight() {
        return this.open.size;
    }
    opened(exchange) {
        this.open.add(exchange);
    }
    closed(exchange, operationId, status, startedAt) {
        this.open.delete(exchange);
        this.metrics.requests.observe(operationId, status, (this.now() - startedAt) / 1_000);
    }
    /** Nothing more can be read from this connection: resolves when its requests are answered. */
    async inputEnded(socket) {
        for (;;) {
            const waiting = [...this.open].filter((exchange) => exchange.isOn(socket));
            if (waiting.length === 0)
                return;
            for (const exchange of waiting)
                exchange.inputEnded();
            await new Promise((resolve) => setTimeout(resolve, SWEEP_MS / 4));
        }
    }
    /** Aborts what is still running; for the end of a stop whose time is up. */
    failAll(makeError) {
        for (const exchange of this.open)
            exchange.fail(makeError());
    }
    release() {
        clearInterval(this.sweeper);
    }
    sweep() {
        if (this.open.size === 0)
            return;
        const now = this.now();
        for (const exchange of this.open)
            exchange.expire(now, this.settings.bodyIdleTimeoutMs);
    }
}
//# sourceMappingURL=http-core.js.map