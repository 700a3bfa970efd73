import { z } from 'zod';
import { HttpCore } from '../../src/http/exchange/http-core.js';
import type { Backend, ServiceInstance } from '../../src/http/instance.js';
import { Health } from '../../src/http/monitoring/health.js';
import { Metrics } from '../../src/http/monitoring/metrics.js';
import { Operations } from '../../src/http/operations/operations.js';
import { type BoundRoute, bindRoutes, jsonRoute, type RawRoute, type Route } from '../../src/http/route.js';
import { type App, buildApp } from '../../src/http/server/app.js';
import { type ListeningServer, listen } from '../../src/http/server/server.js';
import { httpSettings } from '../../src/http/settings.js';
import { createLogger, type Logger } from '../../src/lib/logger.js';
import { services } from '../../src/services/index.js';

export const TOKEN = 'a-token-of-the-http-core-tests';

/** What the routes below report of their life. */
export interface Seen {
  bodies: number;
  waits: number;
  aborted: string[];
}

const json = jsonRoute<Seen>();

const echo = json({
  operationId: 'test.echo',
  summary: 'Answers its input.',
  methods: ['GET', 'POST'],
  path: '/echo/:name',
  request: {
    params: z.object({ name: z.string() }),
    query: z.object({ times: z.coerce.number().optional() }),
    headers: z.object({ 'service-mode': z.string().optional() }),
    body: z.strictObject({ topK: z.number() }).optional(),
  },
  reply: z.unknown(),
  handle: async (input, _context, seen) => {
    seen.bodies += 1;
    return input;
  },
});

const wait = json({
  operationId: 'test.wait',
  summary: 'Waits until it is aborted, at most `ms`.',
  methods: ['POST'],
  path: '/wait/:ms',
  request: { params: z.object({ ms: z.coerce.number() }) },
  reply: z.unknown(),
  handle: async ({ params }, { signal }, seen) => {
    seen.waits += 1;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, params.ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        seen.aborted.push((signal.reason as Error).message);
        resolve();
      });
    });
    return { waited: params.ms };
  },
});

const fails = json({
  operationId: 'test.fails',
  summary: 'Throws what no handler should.',
  methods: ['GET'],
  path: '/fails',
  request: {},
  reply: z.unknown(),
  handle: async () => {
    throw new Error('text of a driver with a secret');
  },
});

const bytes: RawRoute<Seen> = {
  kind: 'raw',
  prefix: true,
  operationId: 'test.bytes',
  summary: 'Answers target and size of what came.',
  methods: ['GET', 'POST'],
  path: '/raw',
  reply: z.unknown(),
  handle: async ({ target, body }) => ({ status: 200, body: JSON.stringify({ target, size: body.length }) }),
};

/** A route whose reply has `size` bytes and ends in END. */
export function largeReply(size: number): BoundRoute {
  return {
    kind: 'raw',
    operationId: 'test.large',
    summary: 'Answers much.',
    methods: ['GET'],
    path: '/large',
    reply: z.unknown(),
    handle: async () => ({ status: 200, body: `${'x'.repeat(size)}END` }),
  };
}

/** The HTTP core with one instance at `/test` whose routes need no backend. */
export async function startHttpCore(
  settings: Record<string, unknown> = {},
  instance: Partial<ServiceInstance> = {},
  log: Logger = createLogger('silent'),
): Promise<{
  url: string;
  port: number;
  seen: Seen;
  core: HttpCore;
  server: ListeningServer;
  stop(): Promise<void>;
}> {
  const seen: Seen = { bodies: 0, waits: 0, aborted: [] };
  const parsed = httpSettings.parse(settings);
  const exposedHeaders = services.flatMap((service) => service.exposedHeaders);
  const core = new HttpCore(parsed, new Metrics(), log, exposedHeaders);
  const routes: Route<Seen>[] = [echo, wait, fails, bytes];
  const complete: ServiceInstance = {
    name: 'default',
    path: '/test',
    port: null,
    auth: { kind: 'bearer', credentials: [{ token: TOKEN, principal: { name: 'test', access: 'full' } }] },
    routes: bindRoutes(routes, seen),
    formatError: (error) => ({ error: error.message, status: error.status, code: error.code }),
    headerAlias: { own: 'service-', sent: 'upstash-' },
    bodyLimit: 100_000,
    timeoutMs: 4_000,
    backends: [],
    ...instance,
  };
  const server = await listen(appOf(core, complete), '127.0.0.1', 0, core);
  return {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    seen,
    core,
    server,
    stop: async () => {
      await server.drain(30_000);
      core.release();
    },
  };
}

function appOf(core: HttpCore, instance: ServiceInstance): App {
  const targets = instance.backends.map((backend: Backend) => ({
    service: 'test',
    instance: instance.name,
    backend,
  }));
  const health = new Health(targets);
  core.metrics.reportBackends(() => health.states());
  return buildApp(
    core,
    [{ path: instance.path, instance }],
    new Operations(core, health, () => '{"openapi":"3.1.0"}'),
  );
}
