import { type AccessControl, openAccess } from './access/access.js';
import { openKeptCalls } from './access/open-kept-calls.js';
import { accessStoreUrl, type Config, enabledServices } from './config/schema.js';
import { createConsole, type ServedConsole } from './console/console.js';
import type { Step } from './console/series/request-series.js';
import { isConsoleServed } from './console/settings.js';
import { HttpError } from './http/errors.js';
import { plainFormat } from './http/exchange/error-sender.js';
import { HttpCore } from './http/exchange/http-core.js';
import type { KeptCalls } from './http/idempotency.js';
import type { ServiceInstance } from './http/instance.js';
import { Health, type HealthTarget } from './http/monitoring/health.js';
import { Metrics, type MetricsSnapshot } from './http/monitoring/metrics.js';
import { Operations } from './http/operations/operations.js';
import { gateOf } from './http/routing/auth.js';
import { buildApp, type MountedAt, type Pages } from './http/server/app.js';
import { type ListeningServer, listen } from './http/server/server.js';
import { Lifecycle } from './lib/lifecycle.js';
import type { Logger } from './lib/logger.js';
import { openTracer } from './lib/traces/tracer.js';
import { services } from './services/index.js';
import type { ServiceConfig, Worker } from './services/service.js';

/** What is said of a gateway that accepts requests. */
export interface Listening {
  readonly port: number;
  /** Such as `kv.default at /kv`. */
  readonly instances: readonly string[];
}

export interface Gateway {
  /** Opens services and ports; resolves when requests are accepted. @throws when a port cannot be had */
  start(): Promise<Listening>;
  /** The metrics of this process alone. */
  metrics(): Promise<MetricsSnapshot>;
  /** Those of them that only grow; asks no backend, so it is possible after a stop. */
  counts(): Promise<MetricsSnapshot>;
  /** Takes what differs in what can be exchanged while requests come; a request that was let in before goes on. */
  reload(config: Config): void;
  /** What this process alone did of late, for the console. */
  steps(): readonly Step[];
  /** Readiness off, drain, release everything; resolves to what went wrong meanwhile. */
  stop(): Promise<Error[]>;
}

export interface GatewayOptions {
  readonly log: Logger;
  /** Of the gateway and of Node, for the metrics. */
  readonly build?: { readonly version: string; readonly node: string };
  /** The text of `/openapi.json`, asked for once. */
  readonly openapi: () => string | Promise<string>;
  /** Wall clock, ms since 1970. */
  readonly now?: () => number;
  readonly worker?: Worker;
  /** Metrics of all processes that serve together, this one included; for `/metrics`. */
  readonly gatherMetrics?: () => Promise<readonly MetricsSnapshot[]>;
  /** What they all did of late, this one included; for the console. */
  readonly gatherSteps?: () => Promise<readonly (readonly Step[])[]>;
  /** Where the build has put the console's page; without it none is served. */
  readonly consoleFolder?: string;
}

/** So long the ports stay closed for backends that are about to answer; one that is away holds up no start beyond it. */
const START_WAIT_MS = 2_000;

interface OpenInstance {
  readonly service: string;
  readonly instance: ServiceInstance;
}

/** The composition root: every service behind one HTTP front. */
export function createGateway(config: Config, options: GatewayOptions): Gateway {
  const { log } = options;
  const lifecycle = new Lifecycle(log);
  const exposedHeaders = services.flatMap((service) => service.exposedHeaders);
  const metrics = new Metrics(options.gatherMetrics);
  // before all others, so that it sends their last spans
  const tracer = openTracer(config.traces, { log, lifecycle, metrics, resource: resourceOf(options) });
  const core = new HttpCore(config.http, metrics, log, exposedHeaders, undefined, tracer);
  lifecycle.onStop('deadlines', () => core.release());
  if (options.build !== undefined) core.metrics.reportBuild(options.build.version, options.build.node);

  const reloads = new Reloads(core);
  let console: ServedConsole | undefined;

  const start = async (): Promise<Listening> => {
    const access = openAccessControl(config, core, lifecycle, options);
    const instances = withIssued(openServices(config, core, lifecycle, reloads, options), access);
    const health = new Health(healthTargets(instances), missingReasons(config));
    core.metrics.reportBackends(() => health.states());
    await health.whenUp(START_WAIT_MS);
    const operations = new Operations(core, health, options.openapi);
    console = openConsole(config, core, instances, health, lifecycle, options);
    const mounted = { instances, admin: access?.instance };
    const servers = await openPorts(config, core, mounted, operations, console);
    core.metrics.reportCertificate(() => servers[0]?.certificateEnd);
    reloads.begin({ instances, operations, servers });
    lifecycle.onStop(
      'http',
      () => drainAll(core, servers, config.http.stopTimeoutMs),
      config.http.stopTimeoutMs + 2_000,
    );
    return { port: (servers[0] as ListeningServer).port, instances: instances.map(nameOf) };
  };

  return {
    start: () =>
      start().catch(async (error: unknown) => {
        await lifecycle.stop();
        throw error;
      }),
    metrics: () => core.metrics.snapshot(),
    counts: () => core.metrics.counts(),
    reload: (changed) => reloads.take(changed),
    steps: () => console?.steps() ?? [],
    stop: () => {
      core.beginStop();
      return lifecycle.stop();
    },
  };
}

function resourceOf({ build, worker }: GatewayOptions): Record<string, string | number> {
  return {
    ...(build === undefined ? {} : { 'service.version': build.version }),
    ...(worker === undefined ? {} : { 'portico.worker': worker.index + 1 }),
  };
}

function openServices(
  config: Config,
  { metrics, tracer }: HttpCore,
  lifecycle: Lifecycle,
  reloads: Reloads,
  { log, now = Date.now, worker }: GatewayOptions,
): OpenInstance[] {
  const keptCalls = keptCallsOf(config, lifecycle, log);
  return enabledServices(config).flatMap(({ service, section }) => {
    const runtime = {
      log: log.child({ service: service.name }),
      lifecycle,
      metrics,
      now,
      onReload: (listener: (section: ServiceConfig) => void) => reloads.listen(service.name, listener),
      keptCalls,
      ...(worker === undefined ? {} : { worker }),
      ...(tracer === undefined ? {} : { tracer }),
    };
    const { name, headerAlias } = service;
    const alias = headerAlias === undefined ? {} : { headerAlias };
    return service
      .open(section, runtime)
      .map((instance) => ({ service: name, instance: { ...instance, ...alias } }));
  });
}

function keptCallsOf(config: Config, lifecycle: Lifecycle, log: Logger): (() => KeptCalls) | undefined {
  const url = accessStoreUrl(config);
  if (url == null) return undefined;
  const calls = openKeptCalls({ url, settings: config.admin, log, lifecycle });
  return () => calls;
}

/** Tokens made at run time, where there is an administrator. */
function openAccessControl(
  config: Config,
  core: HttpCore,
  lifecycle: Lifecycle,
  { log, now = Date.now }: GatewayOptions,
): AccessControl | undefined {
  const { token } = config.admin;
  const storeUrl = accessStoreUrl(config);
  if (token === null || storeUrl == null) return undefined;
  const targets = enabledServices(config).map(({ service, section }) => ({
    service: service.name,
    instances: service.mounts(section).map(({ name }) => name),
    permissions: service.permissions,
  }));
  const access = openAccess({
    settings: { ...config.admin, token },
    storeUrl,
    targets,
    formatError: plainFormat,
    onGone: (ids) => core.endStreamsOf(ids),
    now,
    metrics: core.metrics,
    log: log.child({ service: 'admin' }),
    lifecycle,
  });
  core.auditSink = access.audit;
  return access;
}

function withIssued(
  instances: readonly OpenInstance[],
  access: AccessControl | undefined,
): readonly OpenInstance[] {
  if (access === undefined) return instances;
  return instances.map(({ service, instance }) => ({
    service,
    instance: { ...instance, auth: access.withIssued(instance.auth, service, instance.name) },
  }));
}

interface Opened {
  readonly instances: readonly OpenInstance[];
  readonly operations: Operations;
  readonly servers: readonly ListeningServer[];
}

/** What a configuration that was read again changes. */
class Reloads {
  private readonly listeners: { service: string; listener: (section: ServiceConfig) => void }[] = [];
  private open: Opened | undefined;
  private early: Config | undefined;

  constructor(private readonly core: HttpCore) {}

  listen(service: string, listener: (section: ServiceConfig) => void): void {
    this.listeners.push({ service, listener });
  }

  /** All are there; one that came before is made good. */
  begin(open: Opened): void {
    this.open = open;
    if (this.early !== undefined) this.take(this.early);
  }

  take(config: Config): void {
    if (this.open === undefined) {
      this.early = config;
      return;
    }
    const { instances, operations, servers } = this.open;
    // the only step that can fail comes first
    for (const server of servers) server.renew();
    this.core.reload(config.http);
    operations.reloaded();
    for (const { service, section } of enabledServices(config)) {
      for (const { service: name, listener } of this.listeners) if (name === service.name) listener(section);
      const mounts = service.mounts(section);
      for (const { service: name, instance } of instances) {
        const mount = mounts.find((each) => each.name === instance.name);
        if (name === service.name && mount !== undefined) gateOf(instance).change(mount.auth);
      }
    }
  }
}

function healthTargets(instances: readonly OpenInstance[]): HealthTarget[] {
  return instances.flatMap(({ service, instance }) =>
    instance.backends.map((backend) => ({ service, instance: instance.name, backend })),
  );
}

/** By service. */
function missingReasons(config: Config): [string, string][] {
  return enabledServices(config).flatMap(({ service: { name }, section: { missing } }) =>
    missing === null ? [] : [[name, missing]],
  );
}

function nameOf({ service, instance }: OpenInstance): string {
  return `${service}.${instance.name} at ${instance.path}`;
}

interface Mounted {
  readonly instances: readonly OpenInstance[];
  /** The administrator's routes, beside the operations' pages. */
  readonly admin: ServiceInstance | undefined;
}

interface Wanted {
  readonly port: number;
  readonly mounts: readonly MountedAt[];
  readonly pages: Pages | undefined;
}

function together(pages: readonly Pages[]): Pages {
  return {
    paths: pages.flatMap(({ paths }) => paths),
    mount: (app) => {
      for (const each of pages) each.mount(app);
    },
  };
}

function openConsole(
  config: Config,
  core: HttpCore,
  instances: readonly OpenInstance[],
  health: Health,
  lifecycle: Lifecycle,
  { consoleFolder: folder, now = Date.now, worker, gatherSteps }: GatewayOptions,
): ServedConsole | undefined {
  if (folder === undefined || !isConsoleServed(config.console, config.http.host)) return undefined;
  return createConsole({
    ...{ core, health, lifecycle, now, folder, gatherSteps },
    served: instances.map(({ service, instance }) => ({ service, mount: instance })),
    sharedFolder: worker?.folder,
  });
}

/** The main port first, then the operations' own and those of single instances; all or none. */
async function openPorts(
  config: Config,
  core: HttpCore,
  { instances, admin }: Mounted,
  operations: Operations,
  console: ServedConsole | undefined,
): Promise<ListeningServer[]> {
  const { host, port, operationsPort } = config.http;
  const all: MountedAt[] = instances.map(({ instance }) => ({ path: instance.path, instance }));
  const own: MountedAt[] = admin === undefined ? [] : [{ path: admin.path, instance: admin }];
  const screens = console === undefined ? [] : [{ path: console.api.path, instance: console.api }];
  const pages = console === undefined ? [] : [console.pages];
  const wanted: Wanted[] =
    operationsPort === null
      ? [{ port, mounts: [...all, ...screens, ...own], pages: together([operations, ...pages]) }]
      : [
          { port, mounts: [...all, ...screens], pages: together(pages) },
          { port: operationsPort, mounts: own, pages: operations },
        ];
  for (const { instance } of instances) {
    if (instance.port !== null)
      wanted.push({ port: instance.port, mounts: [{ path: '/', instance }], pages: undefined });
  }
  const servers: ListeningServer[] = [];
  try {
    for (const { port: wantedPort, mounts, pages } of wanted) {
      const isForOperators = wantedPort === operationsPort;
      servers.push(await listen(buildApp(core, mounts, pages), host, wantedPort, core, isForOperators));
    }
  } catch (error) {
    await Promise.all(servers.map((server) => server.drain(0)));
    throw error;
  }
  return servers;
}

/** What has not ended shortly before the cap is answered 503, so that no client is cut without a reply. */
async function drainAll(core: HttpCore, servers: readonly ListeningServer[], capMs: number): Promise<void> {
  const lastCall = setTimeout(
    () => core.failAll(() => new HttpError('stopping')),
    Math.max(0, capMs - 1_000),
  );
  try {
    await Promise.all(servers.map((server) => server.drain(capMs)));
  } finally {
    clearTimeout(lastCall);
  }
}
