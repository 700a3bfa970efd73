import type { Express, Request, Response } from 'express';
import { groupBy } from '../../lib/group-by.js';
import { isLoopback } from '../../lib/loopback.js';
import { HttpError, toHttpError } from '../errors.js';
import { sendPlainError } from '../exchange/error-sender.js';
import { Exchange, type FileReply, JSON_TYPE } from '../exchange/exchange.js';
import type { HttpCore } from '../exchange/http-core.js';
import { headLines } from '../head/head-block.js';
import { securityHeaders } from '../head/security-headers.js';
import type { Health, HealthState } from '../monitoring/health.js';
import type { AuthScheme } from '../route.js';
import { challenge, Gate } from '../routing/auth.js';
import type { HttpSettings } from '../settings.js';
import { REFERENCE_SOURCES, ReferencePage } from './reference-page.js';
import { type StaticFile, staticFile, staticReply } from './static-files.js';

const OPERATOR = { name: 'operator', access: 'read' } as const;

/** The pages for those who run Portico: `/livez`, `/readyz`, `/metrics`, `/openapi.json`. */
export class Operations {
  private readonly gate: Gate;

  constructor(
    private readonly core: HttpCore,
    private readonly health: Health,
    private readonly openapi: () => string | Promise<string>,
  ) {
    this.gate = new Gate(schemeOf(core.settings));
  }

  private openapiFile: Promise<StaticFile> | undefined;
  /** Without a word on caches: each file has its own. */
  private readonly fileHead = headLines(securityHeaders(false));
  private readonly reference = new ReferencePage();
  private readonly referenceHead = headLines(securityHeaders(false, REFERENCE_SOURCES));

  /** The settings of the core have changed. */
  reloaded(): void {
    this.gate.change(schemeOf(this.core.settings));
  }

  private readonly pages: readonly (readonly [path: string, operationId: string, answer: Answer])[] = [
    ['/livez', 'operations.livez', async () => ({ status: 200, body: '{"status":"ok"}' })],
    ['/readyz', 'operations.readyz', (request) => this.readiness(request)],
    ['/readyz/:service', 'operations.readyz', (request) => this.readiness(request)],
    ['/metrics', 'operations.metrics', (request) => this.metrics(request)],
    ['/openapi.json', 'operations.openapi', (request) => this.description(request)],
    ...ReferencePage.paths.map(
      (path) => [path, 'operations.docs', (request: Request) => this.referencePage(request, path)] as const,
    ),
  ];

  /** Where the pages are: theirs also where an instance is mounted at `/`. */
  readonly paths: readonly string[] = this.pages.map(([path]) => path);

  mount(app: Express): void {
    for (const [path, operationId, answer] of this.pages) this.page(app, path, operationId, answer);
  }

  private page(app: Express, path: string, operationId: string, answer: Answer): void {
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
        (page) => {
          if ('headBlock' in page) exchange.sendFile(page.file, page.headBlock);
          else exchange.send(page.status, page.contentType ?? JSON_TYPE, page.body, page.headers);
        },
        (error: unknown) => exchange.fail(toHttpError(error)),
      );
    });
  }

  /**
   * 200 when every backend asked about answers, else 503; `/readyz/{service}` asks about one service only. Instances and
   * reasons are for holders of the metrics token, and on a port of operations where there is none.
   */
  private async readiness(request: Request): Promise<Page> {
    const service = (request.params as { service?: string }).service;
    const states = await this.health.states(service);
    if (service !== undefined && states.length === 0)
      throw new HttpError('not_found', `No service ${service} is configured.`);
    const ready = !this.core.stopping && states.every((state) => state.up);
    const isOperator = detailsAreOpen(this.core.settings) || this.gate.authenticate(request) !== undefined;
    const services = isOperator ? this.details(states) : byService(states);
    return {
      status: ready ? 200 : 503,
      body: JSON.stringify({ status: upOrDown(ready), services }),
      headers: ready ? {} : { 'Retry-After': '1' },
    };
  }

  /** The same with the instances of each service, why they are down, and why a backend was not there at the start. */
  private details(states: readonly HealthState[]): Record<string, object> {
    return Object.fromEntries(
      Object.entries(byService(states)).map(([service, { status }]) => {
        const instances = byInstance(states.filter((state) => state.service === service));
        const missing = this.health.missingReason(service);
        return [service, { status, instances, ...(missing === undefined ? {} : { missing }) }];
      }),
    );
  }

  /** Where the description is open: a browser has no token for it. */
  private async referencePage(request: Request, path: string): Promise<FilePage> {
    if (!descriptionIsOpen(this.core.settings)) throw new HttpError('not_found');
    return { file: staticReply(await this.reference.file(path), request), headBlock: this.referenceHead };
  }

  /** @throws HttpError 401 */
  private demandOperator(request: Request): void {
    if (this.gate.authenticate(request) !== undefined) return;
    const headers = { 'WWW-Authenticate': challenge(schemeOf(this.core.settings)) };
    throw new HttpError('unauthorized', undefined, { headers });
  }

  /** Made and packed when it is first asked for: seldom, while every start would wait for it. */
  private async description(request: Request): Promise<FilePage> {
    if (!descriptionIsOpen(this.core.settings)) this.demandOperator(request);
    this.openapiFile ??= this.made().catch((error) => {
      this.openapiFile = undefined;
      throw error;
    });
    return { file: staticReply(await this.openapiFile, request), headBlock: this.fileHead };
  }

  private async made(): Promise<StaticFile> {
    return staticFile(JSON_TYPE, await this.openapi());
  }

  private async metrics(request: Request): Promise<Page> {
    if (!metricsAreOpen(this.core.settings)) this.demandOperator(request);
    const { metrics } = this.core;
    return { status: 200, body: await metrics.text(), contentType: metrics.contentType };
  }
}

function schemeOf({ metricsToken: token }: HttpSettings): AuthScheme {
  return { kind: 'bearer', credentials: token === null ? [] : [{ token, principal: OPERATOR }] };
}

type Answer = (request: Request) => Promise<Page | FilePage>;

interface FilePage {
  readonly file: FileReply;
  readonly headBlock: string;
}

interface Page {
  status: number;
  body: string | Buffer;
  contentType?: string;
  headers?: Record<string, string>;
}

/** Whether `/metrics` needs no token: none is configured, and the page is not where clients from elsewhere come. */
export function metricsAreOpen({ metricsToken, operationsPort, host }: HttpSettings): boolean {
  return metricsToken === null && (operationsPort !== null || isLoopback(host));
}

/** Whether everybody who reaches `/readyz` is told the reasons: on a port that is for operators alone. */
function detailsAreOpen({ metricsToken, operationsPort }: HttpSettings): boolean {
  return metricsToken === null && operationsPort !== null;
}

/** What is served is nobody's matter off this machine who has no token. */
function descriptionIsOpen({ operationsPort, host }: HttpSettings): boolean {
  return operationsPort !== null || isLoopback(host);
}

type UpOrDown = 'up' | 'down';

const upOrDown = (isUp: boolean): UpOrDown => (isUp ? 'up' : 'down');

/** `{ kv: { status: 'up' } }`; a service is up when every backend of each of its instances is. */
function byService(states: readonly HealthState[]): Record<string, { status: UpOrDown }> {
  const own = groupBy(states, ({ service }) => service);
  return Object.fromEntries(
    [...own].map(([service, each]) => [service, { status: upOrDown(each.every(({ up }) => up)) }]),
  );
}

interface InstanceDetails {
  readonly status: UpOrDown;
  /** Of each backend that is down. */
  readonly reason?: string;
}

/** `{ default: { status: 'down', reason: 'redis: does not answer (ECONNREFUSED)' } }` */
function byInstance(states: readonly HealthState[]): Record<string, InstanceDetails> {
  const own = groupBy(states, ({ instance }) => instance);
  return Object.fromEntries(
    [...own].map(([instance, each]) => {
      const down = each.filter(({ up }) => !up);
      const reason = down.map((state) => `${state.backend}: ${state.reason}`).join('; ');
      return [instance, down.length === 0 ? { status: 'up' } : { status: 'down', reason }];
    }),
  );
}
