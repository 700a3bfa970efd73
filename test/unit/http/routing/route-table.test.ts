import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import fc from 'fast-check';
import { z } from 'zod';
import { HttpCore } from '../../../../src/http/exchange/http-core.js';
import type { ServiceInstance } from '../../../../src/http/instance.js';
import { Metrics } from '../../../../src/http/monitoring/metrics.js';
import type { BoundRoute } from '../../../../src/http/route.js';
import { buildApp } from '../../../../src/http/server/app.js';
import { httpSettings } from '../../../../src/http/settings.js';
import { createLogger } from '../../../../src/lib/logger.js';

const TOKEN = 'a-token-of-the-route-table';
const core = new HttpCore(httpSettings.parse({}), new Metrics(), createLogger('silent'));
afterAll(() => core.release());

const route = (path: string) =>
  ({
    kind: 'json',
    operationId: path,
    summary: '',
    methods: ['GET'],
    path,
    request: { params: z.unknown() },
    reply: z.unknown(),
    handle: async ({ params }: { params: object }) => ({ path, params }),
  }) as unknown as BoundRoute;

function appWith(paths: readonly string[]) {
  const instance: ServiceInstance = {
    name: 'default',
    path: '/',
    port: null,
    auth: { kind: 'bearer', credentials: [{ token: TOKEN, principal: { name: 'test', access: 'full' } }] },
    routes: paths.map(route),
    formatError: ({ status }) => ({ status }),
    bodyLimit: 0,
    timeoutMs: 4_000,
    backends: [],
  };
  return buildApp(core, [{ path: '/', instance }], undefined);
}

/** What Express' router does with the same routes, the more exact before the less. */
function expressWith(paths: readonly string[]) {
  const app = express();
  app.enable('case sensitive routing');
  for (const path of [...paths].sort((a, b) => (shapeOf(a) < shapeOf(b) ? -1 : 1)))
    app.get(path, (request, response) => {
      response.json({ path, params: request.params });
    });
  app.use((_request, response) => {
    response.json({ status: 404 });
  });
  app.use((_error: unknown, _request: unknown, response: express.Response, _next: unknown) => {
    response.json({ status: 400 });
  });
  return app;
}

/** Words before parameters, segment by segment. */
const shapeOf = (path: string) => path.replaceAll(/:\w+/g, '~').replaceAll(/\*\w+/g, '\u{7f}');

const segment = fc.constantFrom('a', 'b', 'consume', 'a.b', ':one', ':two', ':three');
const pattern = fc
  .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.constantFrom([], [], ['*rest']))
  .map(([segments, rest]) => [...segments, ...rest])
  .filter((segments) => new Set(segments).size === segments.length && segments[0]?.[0] !== '*')
  .map((segments) => `/${segments.join('/')}`);
const patterns = fc.uniqueArray(pattern, { minLength: 1, maxLength: 8, selector: shapeOf });
const word = fc.constantFrom(
  ...[
    'a',
    'b',
    'A',
    'a.b',
    'c',
    '..',
    '.',
    'consume',
    '%61',
    '%C3%A9',
    'a%2Fb',
    '%2f',
    '%',
    '%zz',
    '',
    'a:b',
  ],
  ...['*', ':one', 'a;b', '__proto__', '%23', '%3F', '~'],
);
const path = fc.array(word, { minLength: 1, maxLength: 6 }).map((words) => `/${words.join('/')}`);
const paths = fc.array(path, { minLength: 20, maxLength: 20 });

async function ask(server: Server, target: string): Promise<unknown> {
  const { port } = server.address() as AddressInfo;
  const headers = { authorization: `Bearer ${TOKEN}` };
  const outgoing = request({ port, path: target, headers, agent: false }).end();
  const [reply] = await once(outgoing, 'response');
  let text = '';
  for await (const chunk of reply) text += chunk;
  return JSON.parse(text);
}

test('what is found is what Express finds, with the same parameters', async () => {
  let table: Parameters<typeof createServer>[1];
  let reference: Parameters<typeof createServer>[1];
  const app = appWith([]);
  const classes = { IncomingMessage: app.IncomingMessage, ServerResponse: app.ServerResponse };
  const own = createServer(classes as object, (request, response) => table?.(request, response as never));
  const theirs = createServer((request, response) => reference?.(request, response));
  for (const server of [own, theirs]) await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    await fc.assert(
      fc.asyncProperty(patterns, paths, async (routes, targets) => {
        table = appWith(routes).handle as typeof table;
        reference = expressWith(routes);
        const found = await Promise.all(targets.map((target) => ask(own, target)));
        expect(found).toEqual(await Promise.all(targets.map((target) => ask(theirs, target))));
      }),
      { numRuns: 25 },
    );
  } finally {
    own.close();
    theirs.close();
  }
});

test.each([
  '/a{/:b}',
  '/a/*',
  '/*rest/a',
  '/:a.:b',
  '/:a-b',
  '/a//b',
  'a',
  '/a(b)',
  '/a/',
  '/a b',
  '/%61',
  '/a:b',
])('a route at %s is refused at the start', (path) => {
  expect(() => appWith([path])).toThrow(`not ${path}`);
});
