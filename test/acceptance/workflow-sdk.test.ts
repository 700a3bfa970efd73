import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, type WorkflowContext, type WorkflowRunLog } from '@upstash/workflow';
import * as onExpress from '@upstash/workflow/express';
import * as onHono from '@upstash/workflow/hono';
import express from 'express';
import { Hono } from 'hono';
import { eventually } from '../support/eventually.js';
import { removeQueueService, SHARED_PREFIX } from '../support/queue/queue-cleanup.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';

/** As `npm start` makes it: the addresses of webhooks are made of its UserID. */
const TOKEN = btoa(JSON.stringify({ UserID: 'operator', Password: 'acceptance-of-workflows' }));
const NAME = 'test_workflow_acceptance';
const MIB = 1024 * 1024;

type Context = WorkflowContext<never>;
type Route = (context: Context) => Promise<unknown>;

let gateway: SpawnedGateway;
let client: Client;

beforeAll(async () => {
  // the SDK writes out every run that fails
  jest.spyOn(console, 'error').mockImplementation(() => undefined);
  gateway = await spawnGateway(
    { queue: { allowedDestinations: ['127.0.0.1'], prefix: SHARED_PREFIX, schema: NAME } },
    { PORTICO_QUEUE_TOKEN: TOKEN },
  );
  // all that an application is given
  Object.assign(process.env, {
    QSTASH_URL: `${gateway.url}/queue`,
    QSTASH_TOKEN: TOKEN,
    QSTASH_CURRENT_SIGNING_KEY: TOKENS.currentSigningKey,
    QSTASH_NEXT_SIGNING_KEY: TOKENS.nextSigningKey,
  });
  client = new Client({ baseUrl: process.env.QSTASH_URL as string, token: TOKEN });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  expect(await gateway?.stop()).toBe(0);
  await removeQueueService(NAME);
});

/** What the steps have run, by run. */
const ran: string[] = [];
const failures: unknown[] = [];
const webhooks = new Map<string, string>();
/** Runs that have come to their last line. */
const done = new Set<string>();

const steps: Route = async (context) => {
  const { origin } = new URL(context.url);
  const id = context.workflowRunId;
  const { name } = context.requestPayload as { name: string };
  const first = await context.run('first', () => {
    ran.push(`${id} first`);
    return `hello ${name}`;
  });
  await context.sleep('nap', 1);
  await context.sleepUntil('until', Date.now() / 1_000 + 0.5);
  const [two, three] = await Promise.all([
    context.run('two', () => 2),
    context.run('three', async () => 3),
    context.sleep('beside', '1s'),
  ]);
  const { status, body, header } = await context.call<{ method: string; body: unknown }>('call', {
    url: `${origin}/teapot`,
    method: 'PUT',
    body: JSON.stringify({ two, three }),
    headers: { 'Content-Type': 'application/json', 'x-asked': 'yes' },
  });
  return context.run('last', () => {
    ran.push(`${id} last`);
    return { first, status, body, said: header['X-Said'] };
  });
};

const waits: Route = async (context) => {
  const { event } = context.requestPayload as { event: string };
  const [came, late] = await Promise.all([
    context.waitForEvent('for it', event, { timeout: '1h' }),
    context.waitForEvent('in vain', `${event}-never`, { timeout: '1s' }),
  ]);
  const { notifyResponse } = await context.notify('nobody', `${event}-nobody`, 'x');
  const webhook = await context.createWebhook('hook');
  await context.run('tell', () => {
    webhooks.set(context.workflowRunId, webhook.webhookUrl);
  });
  const { request } = await context.waitForWebhook('called', webhook, '1h');
  return [came.eventData, late.timeout, notifyResponse, request?.method, await request?.text()];
};

const fails: Route = (context) =>
  context.run('bad', () => {
    throw new Error('out of paper');
  });

const large: Route = async (context) => {
  const { origin } = new URL(context.url);
  const one = await context.run('one', () => 'a'.repeat(MIB));
  const two = await context.run('two', () => 'b'.repeat(1.5 * MIB));
  const { body } = await context.call<string>('call', { url: `${origin}/large`, method: 'GET' });
  const branches = await Promise.all([
    context.run('three', () => 'c'.repeat(MIB / 4)),
    context.run('four', () => 'd'.repeat(MIB / 4)),
  ]);
  done.add(context.workflowRunId);
  return [one, two, body, ...branches].map((text) => [text[0], text.length]);
};

const child: Route = async (context) =>
  context.run('double', () => 2 * (context.requestPayload as { n: number }).n);

interface App {
  readonly url: string;
  stop(): Promise<void>;
}

async function listen(handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<App> {
  const server: Server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** What `failureFunction` is told. */
const failureFunction = ({ context, failStatus, failResponse }: Failure) => {
  failures.push([context.requestPayload, failStatus, failResponse]);
  return 'told';
};
interface Failure {
  readonly context: { readonly requestPayload: unknown };
  readonly failStatus: number;
  readonly failResponse: string;
}

const many = ({ createWorkflow }: { createWorkflow: typeof onHono.createWorkflow }) => {
  const called = createWorkflow(child as never);
  const parent = createWorkflow((async (context: Context) => {
    const { body, isFailed } = await context.invoke('ask', { workflow: called, body: { n: 21 } } as never);
    return { body, isFailed };
  }) as never);
  return { child: called, parent };
};

function startExpress(): Promise<App> {
  const app = express();
  // 100 kB is what it takes by itself; histories up to workflow.lazyBytes come whole, in base64
  app.use(express.json({ limit: 8 * MIB }));
  app.put('/teapot', (request, response) => {
    const { method, body } = request;
    response
      .status(418)
      .set('x-said', String(request.get('x-asked')))
      .json({ method, body });
  });
  app.get('/large', (_, response) => void response.json('e'.repeat(MIB)));
  for (const [path, route] of Object.entries({ steps, waits, large }))
    app.use(`/${path}`, onExpress.serve(route as never));
  app.use('/fails', onExpress.serve(fails as never, { failureFunction } as never));
  app.use('/many', onExpress.serveMany(many(onExpress as never) as never));
  return listen(app);
}

function startHono(): Promise<App> {
  const app = new Hono();
  app.put('/teapot', async ({ req }) =>
    Response.json(
      { method: req.method, body: await req.json() },
      { status: 418, headers: { 'x-said': String(req.header('x-asked')) } },
    ),
  );
  app.get('/large', () => Response.json('e'.repeat(MIB)));
  for (const [path, route] of Object.entries({ steps, waits, large }))
    app.post(`/${path}`, onHono.serve(route as never) as never);
  app.post('/fails', onHono.serve(fails as never, { failureFunction } as never) as never);
  app.post('/many/:name', onHono.serveMany(many(onHono) as never) as never);
  return listen(async (incoming, outgoing) => {
    const { method = '', headers, url = '' } = incoming;
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = method === 'GET' ? null : Buffer.concat(chunks);
    const address = `http://${headers.host}${url}`;
    const reply = await app.fetch(
      new Request(address, { method, headers: headers as Record<string, string>, body }),
    );
    outgoing.writeHead(reply.status, Object.fromEntries(reply.headers));
    outgoing.end(Buffer.from(await reply.arrayBuffer()));
  });
}

/** The log of a run that has ended. */
const ended = (workflowRunId: string): Promise<WorkflowRunLog> =>
  eventually(async () => {
    const { runs } = await client.logs({ filter: { workflowRunId } } as never);
    expect(runs[0]?.workflowRunCompletedAt).toBeDefined();
    return runs[0] as WorkflowRunLog;
  });

const resultOf = (log: WorkflowRunLog): unknown =>
  log.workflowRunResponse === undefined ? undefined : JSON.parse(String(log.workflowRunResponse));

describe.each([
  ['Express', startExpress],
  ['Hono', startHono],
])('an endpoint with %s', (_name, start) => {
  let app: App;
  beforeAll(async () => {
    app = await start();
  });
  afterAll(() => app?.stop());

  it('runs steps, sleeps, branches and a call, each once', async () => {
    const { workflowRunId } = await client.trigger({ url: `${app.url}/steps`, body: { name: 'Ada' } });
    const log = await ended(workflowRunId);
    expect([log.workflowState, resultOf(log)]).toEqual([
      'RUN_SUCCESS',
      {
        first: 'hello Ada',
        status: 418,
        body: { method: 'PUT', body: { two: 2, three: 3 } },
        said: ['yes'],
      },
    ]);
    expect(ran.filter((line) => line.startsWith(workflowRunId))).toEqual([
      `${workflowRunId} first`,
      `${workflowRunId} last`,
    ]);
  });

  it('waits for events and webhooks', async () => {
    const event = `event-${new URL(app.url).port}`;
    const { workflowRunId } = await client.trigger({ url: `${app.url}/waits`, body: { event } });
    await eventually(async () => expect(await client.getWaiters({ eventId: event })).toHaveLength(1));
    await client.notify({ eventId: event, eventData: { colour: 'green' } });
    const hook = await eventually(() => {
      const url = webhooks.get(workflowRunId);
      expect(url).toBeDefined();
      return url as string;
    });
    expect((await fetch(hook, { method: 'PATCH', body: 'from outside' })).status).toBe(200);
    const log = await ended(workflowRunId);
    expect([log.workflowState, resultOf(log)]).toEqual([
      'RUN_SUCCESS',
      [{ colour: 'green' }, true, [], 'PATCH', 'from outside'],
    ]);
  });

  it('tells the failure function once, with the payload of the run', async () => {
    const body = { app: app.url };
    const { workflowRunId } = await client.trigger({ url: `${app.url}/fails`, body, retries: 0 });
    const { workflowState } = await ended(workflowRunId);
    expect(workflowState).toBe('RUN_FAILED');
    await eventually(async () =>
      expect((await ended(workflowRunId)).failureFunction).toMatchObject({ state: 'CALLBACK_SUCCESS' }),
    );
    expect(failures.filter((failure) => JSON.stringify(failure).includes(app.url))).toEqual([
      [body, 500, 'out of paper'],
    ]);
  });

  it('fetches a history that is too long for one request', async () => {
    const { workflowRunId } = await client.trigger({ url: `${app.url}/large` });
    // its log has 4 MB
    await eventually(() => expect(done.has(workflowRunId)).toBe(true));
    const log = await ended(workflowRunId);
    expect([log.workflowState, resultOf(log)]).toEqual([
      'RUN_SUCCESS',
      [
        ['a', MIB],
        ['b', 1.5 * MIB],
        ['e', MIB],
        ['c', MIB / 4],
        ['d', MIB / 4],
      ],
    ]);
  });

  it('invokes another workflow of the same endpoint', async () => {
    const { workflowRunId } = await client.trigger({ url: `${app.url}/many/parent` });
    const log = await ended(workflowRunId);
    expect([log.workflowState, resultOf(log)]).toEqual(['RUN_SUCCESS', { body: 42, isFailed: false }]);
  });
});
