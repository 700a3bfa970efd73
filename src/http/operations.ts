import type { Express, Request, Response } from 'express';
import { authenticator, challenge } from './auth.js';
import { HttpError, toHttpError } from './errors.js';
import { Exchange } from './exchange.js';
import type { Health, HealthState } from './health.js';
import type { HttpCore } from './http-core.js';
import { JSON_TYPE } from './mount.js';
import { sendPlainError } from './plain-error.js';

const METRICS_PRINCIPAL = { name: 'metrics', access: 'read' } as const;

/** The pages for those who run Portico: `/livez`, `/readyz`, `/metrics`, `/openapi.json`. */
export class Operations {
  constructor(
    private readonly core: HttpCore,
    private readonly health: Health,
    private readonly openapi: string,
  ) {}

  mount(app: Express): void {
    this.page(app, '/livez', 'operations.livez', async () => ({ status: 200, body: '{"status":"ok"}' }));
    this.page(app, '/readyz{/:service}', 'operations.readyz', (request) => this.readiness(request));
    this.page(app, '/metrics', 'operations.metrics', (request) => this.metrics(request));
    this.page(app, '/openapi.json', 'operations.openapi', async () => ({ status: 200, body: this.openapi }));
  }

  private page(
    app: Express,
    path: string,
    operationId: string,
    answer: (request: Request) => Promise<Page>,
  ): void {
    app.all(path, (request: Request, response: Response) => {
      const exchange = new Exchange(this.core, request, response, sendPlainError);
      exchange.operationId = operationId;
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        exchange.fail(
          new HttpError('method_not_allowed', 'Use one of: GET, HEAD.', { headers: { Allow: 'GET, HEAD' } }),
        );
        return;
      }
      answer(request).then(
        (page) => exchange.send(page.status, page.contentType ?? JSON_TYPE, page.body, page.headers),
        (error: unknown) => exchange.fail(toHttpError(error)),
      );
    });
  }

  /** 200 when every backend asked about answers, else 503; `/readyz/{service}` asks about one service only. */
  private async readiness(request: Request): Promise<Page> {
    const service = (request.params as { service?: string }).service;
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

  private async metrics(request: Request): Promise<Page> {
    const token = this.core.settings.metricsToken;
    if (token !== null) {
      const scheme = { kind: 'bearer', credentials: [{ token, principal: METRICS_PRINCIPAL }] } as const;
      if (authenticator(scheme)(request) === undefined) {
        throw new HttpError('unauthorized', undefined, {
          headers: { 'WWW-Authenticate': challenge(scheme) },
        });
      }
    }
    const { metrics } = this.core;
    return { status: 200, body: await metrics.text(), contentType: metrics.contentType };
  }
}

interface Page {
  status: number;
  body: string;
  contentType?: string;
  headers?: Record<string, string>;
}

/** `{ kv: { default: { up: true } } }`; an instance with several backends is up when all of them are. */
function byService(
  states: readonly HealthState[],
): Record<string, Record<string, { up: boolean; reason?: string }>> {
  const services: Record<string, Record<string, { up: boolean; reason?: string }>> = {};
  for (const { service, instance, backend, up, reason } of states) {
    services[service] ??= {};
    const instances = services[service];
    const before = instances[instance] ?? { up: true };
    const why =
      reason === undefined
        ? before.reason
        : [before.reason, `${backend}: ${reason}`].filter(Boolean).join('; ');
    instances[instance] = { up: before.up && up, ...(why === undefined ? {} : { reason: why }) };
  }
  return services;
}
