import { authenticator, challenge } from './auth.js';
import { HttpError } from './errors.js';
import { Exchange } from './exchange.js';
import { JSON_TYPE } from './mount.js';
const METRICS_PRINCIPAL = { name: 'metrics', access: 'read' };
/** The pages for those who run Portico: `/livez`, `/readyz`, `/metrics`, `/openapi.json`. */
export class Operations {
    core;
    health;
    openapi;
    constructor(core, health, openapi) {
        this.core = core;
        this.health = health;
        this.openapi = openapi;
    }
    mount(app) {
        this.page(app, '/livez', 'operations.livez', async () => ({ status: 200, body: '{"status":"ok"}' }));
        this.page(app, '/readyz{/:service}', 'operations.readyz', (request) => this.readiness(request));
        this.page(app, '/metrics', 'operations.metrics', (request) => this.metrics(request));
        this.page(app, '/openapi.json', 'operations.openapi', async () => ({ status: 200, body: this.openapi }));
    }
    page(app, path, operationId, answer) {
        app.all(path, (request, response) => {
            const exchange = new Exchange(this.core, request, response, sendPlainError);
            exchange.operationId = operationId;
            if (request.method !== 'GET' && request.method !== 'HEAD') {
                exchange.fail(new HttpError('method_not_allowed', 'Use one of: GET, HEAD.', { headers: { Allow: 'GET, HEAD' } }));
                return;
            }
            answer(request).then((page) => exchange.send(page.status, page.contentType ?? JSON_TYPE, page.body, page.headers), (error) => exchange.fail(error instanceof HttpError ? error : new HttpError('internal', undefined, { cause: error })));
        });
    }
    /** 200 when every backend asked about answers, else 503; `/readyz/{service}` asks about one service only. */
    async readiness(request) {
        const service = request.params.service;
        const states = await this.health.states(service);
        if (service !== undefined && states.length === 0)
            throw new HttpError('not_found', `No service ${service} is configured.`);
        const ready = !this.core.stopping && states.every((state) => state.up);
        const status = this.core.stopping ? 'stopping' : ready ? 'ready' : 'degraded';
        return {
            status: ready ? 200 : 503,
            body: JSON.stringify({ status, services: byService(states) }),
            headers: ready ? {} : { 'Retry-After': '1' },
        };
    }
    async metrics(request) {
        const token = this.core.settings.metricsToken;
        if (token !== null) {
            const scheme = { kind: 'bearer', credentials: [{ token, principal: METRICS_PRINCIPAL }] };
            if (authenticator(scheme)(request) === undefined) {
                throw new HttpError('unauthorized', undefined, {
                    headers: { 'WWW-Authenticate': challenge(scheme) },
                });
            }
        }
        const { registry } = this.core.metrics;
        return { status: 200, body: await registry.metrics(), contentType: registry.contentType };
    }
}
function sendPlainError(exchange, error) {
    if (error.status >= 500)
        exchange.log.error({ err: error, requestId: exchange.requestId }, 'request failed');
    const body = JSON.stringify({ error: error.message, status: error.status });
    exchange.send(error.status, JSON_TYPE, body, error.headers);
}
/** `{ kv: { default: { up: true } } }`; an instance with several backends is up when all of them are. */
function byService(states) {
    const services = {};
    for (const { service, instance, backend, up, reason } of states) {
        services[service] ??= {};
        const instances = services[service];
        const before = instances[instance] ?? { up: true };
        const why = reason === undefined
            ? before.reason
            : [before.reason, `${backend}: ${reason}`].filter(Boolean).join('; ');
        instances[instance] = { up: before.up && up, ...(why === undefined ? {} : { reason: why }) };
    }
    return services;
}
//# sourceMappingURL=operations.js.map