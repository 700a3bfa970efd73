import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client as QueueClient, Receiver } from '@upstash/qstash';
import { Client, serve, type WorkflowContext } from '@upstash/workflow';
import { eventually, HANGS_MS } from '../eventually.js';
import { type RunningGateway, startGateway } from '../gateway.js';
import { TOKENS } from '../tokens.js';
import { type QueueNamespace, queueNamespace } from './queue.js';

/** One request to an endpoint. */
export interface Call {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Of the answer. */
  status?: number;
}

type Route = (context: WorkflowContext<never>) => Promise<unknown>;
type ServeOptions = NonNullable<Parameters<typeof serve>[1]>;

export interface Workflow {
  readonly run: Route;
  readonly options?: Partial<ServeOptions>;
  /** As `invoke` names it. */
  readonly id?: string;
}

export interface WorkflowSite {
  readonly client: Client;
  /** Address of the application, without a path. */
  readonly url: string;
  readonly calls: readonly Call[];
  /** Serves a workflow at a path of its own. @returns its URL */
  add(path: string, run: (context: WorkflowContext<never>) => Promise<unknown>, options?: object): string;
  /** A plain HTTP endpoint. */
  addPlain(path: string, answer: (request: Request) => Response | Promise<Response>): string;
  stop(): Promise<void>;
}

/** An application as its owner would write it, with the SDK's own handler, which verifies signatures. */
export async function startWorkflowSite(
  gatewayUrl: () => string,
  token: string = TOKENS.queue,
): Promise<WorkflowSite> {
  const handlers = new Map<string, (request: Request) => Response | Promise<Response>>();
  const calls: Call[] = [];
  const { currentSigningKey, nextSigningKey } = TOKENS;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const { url: path = '', headers, method = 'POST' } = request;
      const call: Call = { path, headers, body: Buffer.concat(chunks) };
      Object.defineProperty(call, 'body', { enumerable: false });
      calls.push(call);
      const handler = handlers.get(path.split('?')[0] as string);
      const web = new Request(url + path, {
        method,
        headers: headers as Record<string, string>,
        ...(method === 'GET' ? {} : { body: call.body as unknown as string }),
      });
      const reply = (await handler?.(web)) ?? new Response('no such path', { status: 404 });
      call.status = reply.status;
      response.writeHead(reply.status, Object.fromEntries(reply.headers));
      response.end(Buffer.from(await reply.arrayBuffer()));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const baseUrl = () => `${gatewayUrl()}/queue`;
  // workflows look their client up when they are served, so a gateway may come later
  return {
    get client() {
      return patientClient(baseUrl(), token);
    },
    url,
    calls,
    add: (path, run, options = {}) => {
      handlers.set(path, (request) =>
        serve(run as never, {
          qstashClient: new QueueClient({ baseUrl: baseUrl(), token }) as never,
          receiver: new Receiver({ currentSigningKey, nextSigningKey }) as never,
          url: url + path,
          // a developer's own UPSTASH_WORKFLOW_URL would take the calls
          env: {},
          ...options,
        }).handler(request),
      );
      return url + path;
    },
    addPlain: (path, answer) => {
      handlers.set(path, answer);
      return url + path;
    },
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** The SDK's client does not try again what is refused for now (503), as of many things at once a busy machine refuses some. */
function patientClient(baseUrl: string, token: string): Client {
  const client = new Client({ baseUrl, token });
  const once = client.trigger.bind(client) as (settings: unknown) => Promise<unknown>;
  const trigger = async (settings: unknown) => {
    const end = performance.now() + HANGS_MS;
    for (;;) {
      try {
        return await once(settings);
      } catch (error) {
        if ((error as { status?: number }).status !== 503 || performance.now() > end) throw error;
        await sleep(1_000);
      }
    }
  };
  return Object.assign(client, { trigger });
}

export interface WorkflowsUnderTest {
  readonly namespace: QueueNamespace;
  readonly gateway: Pick<RunningGateway, 'url'>;
  readonly site: WorkflowSite;
  /** Of a workflow or an endpoint that nobody else has. */
  readonly freshPath: () => string;
  /** Requests that came to an endpoint. */
  readonly callsOf: (url: string) => readonly Call[];
}

/**
 * A gateway with the queue alone and an application of workflows for the tests of a file, whose paths begin with `name`.
 * @param settings of the queue
 * @param token the queue's, where it is not the tests' usual one
 */
export function workflowsUnderTest(
  name: string,
  settings: Readonly<Record<string, unknown>> = {},
  token: string = TOKENS.queue,
): WorkflowsUnderTest {
  const namespace = queueNamespace(settings);
  let gateway: RunningGateway | undefined;
  let site: WorkflowSite | undefined;
  const url = () => (gateway as RunningGateway).url;
  beforeAll(async () => {
    gateway = await startGateway({ queue: namespace.config }, { PORTICO_QUEUE_TOKEN: token });
    site = await startWorkflowSite(url, token);
    await eventually(async () => expect((await fetch(`${url()}/readyz`)).status).toBe(200));
  });
  afterAll(async () => {
    await gateway?.stop();
    await site?.stop();
    await namespace.remove();
  });
  let paths = 0;
  return {
    namespace,
    gateway: {
      get url() {
        return url();
      },
    },
    site: new Proxy({} as WorkflowSite, {
      get: (_, key) => (site as WorkflowSite)[key as keyof WorkflowSite],
    }),
    freshPath: () => `/${name}-${++paths}`,
    callsOf: (endpoint) =>
      (site as WorkflowSite).calls.filter(({ path }) => path === new URL(endpoint).pathname),
  };
}

/** The SDK writes out every run and request that fails, which in some files are many. */
export function silenceSdk(): void {
  beforeAll(() => {
    for (const level of ['error', 'warn'] as const) jest.spyOn(console, level).mockImplementation();
  });
}

export interface RunRow {
  readonly no: string;
  readonly id: string;
  readonly state: string;
  readonly result: Buffer | null;
  readonly next_seq: number;
}

/** The rows of a run's id, oldest first, once the last of them has ended. */
export function endedRuns(
  namespace: { query<Row>(sql: string, values?: readonly unknown[]): Promise<Row[]> },
  id: string,
  count = 1,
): Promise<RunRow[]> {
  return eventually(async () => {
    const rows = await namespace.query<RunRow>(
      'select no, id, state, result, next_seq from $schema.workflow_runs where id = $1 and ended_at is not null order by no',
      [id],
    );
    expect(rows.length).toBeGreaterThanOrEqual(count);
    return rows;
  });
}

export const resultOf = (run: RunRow | undefined): unknown =>
  run?.result == null || run.result.length === 0 ? undefined : JSON.parse(String(run.result));
