import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { Agent, createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually, PROMPT_MS } from '../support/eventually.js';
import { RawClient } from '../support/raw-client.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';

const KEY = 'workers:count';

/** Pids of the workers. */
function workersOf({ process: { pid } }: SpawnedGateway): number[] {
  try {
    const list = execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)]).toString();
    return list.trim().split(/\s+/).filter(Boolean).map(Number);
  } catch {
    return []; // ps finds none
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

interface Answer {
  readonly status: number;
  readonly body: string;
  /** What request ids of one process begin with. */
  readonly process: string;
}

/** A client with one kept connection. */
class Client {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(private readonly url: string) {}

  call(path: string, words?: readonly string[]): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = httpRequest(`${this.url}${path}`, {
        agent: this.agent,
        method: words === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${TOKENS.kv}` },
      });
      sent.on('error', reject).on('response', (reply) => {
        let body = '';
        reply.setEncoding('utf8').on('data', (text: string) => {
          body += text;
        });
        reply.on('error', reject).on('end', () =>
          resolve({
            status: reply.statusCode ?? 0,
            body,
            process: String(reply.headers['x-request-id']).split('-')[0] as string,
          }),
        );
      });
      sent.end(words === undefined ? undefined : JSON.stringify(words));
    });
  }

  close(): void {
    this.agent.destroy();
  }
}

/** Clients on so many connections that both of two workers have some. */
async function clientsOfBoth(
  gateway: SpawnedGateway,
): Promise<{ clients: Client[]; processes: Set<string> }> {
  const clients: Client[] = [];
  const processes = new Set<string>();
  await eventually(async () => {
    const client = new Client(gateway.url);
    clients.push(client);
    processes.add((await client.call('/livez')).process);
    expect(processes.size).toBe(2);
    expect(clients.length).toBeGreaterThanOrEqual(8);
  });
  return { clients, processes };
}

const metric = (text: string, name: string) =>
  Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
const SETS = 'portico_http_request_duration_seconds_count\\{operation="kv.command",status="200"\\}';

const start = (http: Record<string, unknown> = {}) => spawnGateway({ kv: {}, http: { workers: 2, ...http } });

it('serves one port by all workers, counts as one, and replaces a worker that dies', async () => {
  const gateway = await start();
  const entries = gateway.lines.map((line) => JSON.parse(line) as { msg: string; worker?: number });
  expect(entries.filter(({ msg }) => msg === 'listening')).toEqual([
    expect.objectContaining({ workers: 2, port: Number(new URL(gateway.url).port) }),
  ]);
  expect(new Set(entries.map(({ worker }) => worker))).toEqual(new Set([1, 2, undefined]));

  const { clients, processes } = await clientsOfBoth(gateway);
  for (const client of clients) expect((await client.call('/kv', ['PING'])).status).toBe(200);
  const calls = clients.length;
  for (const client of clients) {
    const text = (await client.call('/metrics')).body;
    expect(metric(text, SETS)).toBe(calls);
    expect(metric(text, 'portico_workers')).toBe(2);
    expect(metric(text, 'portico_backend_up\\{service="kv",instance="default",backend="redis"\\}')).toBe(1);
    expect(Math.abs(metric(text, 'process_start_time_seconds') - Date.now() / 1_000)).toBeLessThan(600);
    expect((await client.call('/readyz')).status).toBe(200);
  }

  const [first, other] = workersOf(gateway) as [number, number];
  process.kill(first, 'SIGKILL');
  await eventually(() => {
    const now = workersOf(gateway);
    expect(now).toHaveLength(2);
    expect(now).not.toContain(first);
    expect(now).toContain(other);
  });
  await eventually(async () => {
    const client = new Client(gateway.url);
    const { body, process: name } = await client.call('/metrics');
    client.close();
    expect(metric(body, 'portico_workers')).toBe(2);
    // what the dead one had counted is not forgotten
    expect(metric(body, SETS)).toBe(calls);
    processes.add(name);
    expect(processes.size).toBe(3);
  });
  for (const client of clients) client.close();
  expect(await gateway.stop()).toBe(0);
  expect(gateway.lines.join('\n')).toMatch(/"signal":"SIGKILL".*worker ended, starting another/);
});

it('lets no request fail but those that a killed worker was working on', async () => {
  const gateway = await start();
  const { clients } = await clientsOfBoth(gateway);
  let over = false;
  let answered = 0;
  const failed: string[] = [];
  const run = async (client: Client) => {
    let last = '';
    while (!over) {
      try {
        const { status, process: name } = await client.call('/kv', ['PING']);
        if (status !== 200) failed.push(`${status} of ${last}`);
        last = name;
        answered += 1;
      } catch (error) {
        failed.push(`${(error as NodeJS.ErrnoException).code} of ${last}`);
      }
    }
  };
  const runs = clients.map(run);
  await eventually(() => expect(answered).toBeGreaterThan(200));
  process.kill(workersOf(gateway)[0] as number, 'SIGKILL');
  const before = answered;
  await eventually(() => expect(answered).toBeGreaterThan(before + 1_000));
  over = true;
  await Promise.all(runs);
  expect(failed.length).toBeLessThanOrEqual(clients.length);
  expect(new Set(failed).size).toBeLessThanOrEqual(1);
  for (const failure of failed) expect(failure).toMatch(/^(ECONNRESET|EPIPE) of /);
  for (const client of clients) client.close();
  await gateway.stop();
});

it('drains all workers on SIGTERM, and everything that it answered was done', async () => {
  const gateway = await start();
  const { clients } = await clientsOfBoth(gateway);
  await clients[0]?.call('/kv', ['DEL', KEY]);
  let answered = 0;
  let failed = 0;
  const run = async (client: Client) => {
    for (;;) {
      try {
        const { status } = await client.call('/kv', ['INCR', KEY]);
        if (status === 200) answered += 1;
        else failed += 1;
      } catch {
        return; // the port is closed
      }
    }
  };
  const runs = clients.map(run);
  await eventually(() => expect(answered).toBeGreaterThan(200));
  const began = performance.now();
  expect(await gateway.stop()).toBe(0);
  expect(performance.now() - began).toBeLessThan(20_000);
  await Promise.all(runs);
  expect(failed).toBe(0);
  for (const client of clients) client.close();

  const next = await spawnGateway({ kv: {} });
  const client = new Client(next.url);
  const count = Number(
    (JSON.parse((await client.call('/kv', ['GETDEL', KEY])).body) as { result: string }).result,
  );
  // a connection that the closing port no longer took was not answered
  expect(count).toBeGreaterThanOrEqual(answered);
  expect(count).toBeLessThanOrEqual(answered + clients.length);
  client.close();
  await next.stop();
});

it('ends at once at a second signal, workers too', async () => {
  const gateway = await start();
  const workers = workersOf(gateway);
  const client = await RawClient.open(Number(new URL(gateway.url).port));
  client.write(
    `POST /kv HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKENS.kv}\r\nContent-Length: 10\r\n\r\n[`,
  );
  await eventually(async () => {
    const other = new Client(gateway.url);
    const { body } = await other.call('/metrics');
    other.close();
    expect(metric(body, 'portico_http_requests_in_flight')).toBe(2);
  });
  const exited = once(gateway.process, 'exit');
  gateway.process.kill('SIGTERM');
  await eventually(() => expect(gateway.lines.join('\n')).toContain('"msg":"stopping"'));
  const began = performance.now();
  gateway.process.kill('SIGTERM');
  expect(await exited).toEqual([130, null]);
  expect(await client.closed()).toBe('');
  expect(performance.now() - began).toBeLessThan(PROMPT_MS);
  // a process that has ended is seen until the system's first one takes notice
  await eventually(() => expect(workers.filter(isAlive)).toEqual([]));
});

it('leaves no worker behind when the primary process is killed, and the port is free again', async () => {
  const gateway = await start();
  const workers = workersOf(gateway);
  expect(workers).toHaveLength(2);
  await gateway.kill();
  const next = await start({ port: Number(new URL(gateway.url).port) });
  const client = new Client(next.url);
  expect((await client.call('/kv', ['PING'])).status).toBe(200);
  await eventually(() => expect(workers.filter(isAlive)).toEqual([]));
  client.close();
  expect(await next.stop()).toBe(0);
});

it('names a port that is taken once, and ends with 1', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const failure = await start({ port }).then(
    () => 'started',
    (error: Error) => error.message,
  );
  other.close();
  expect(failure).toContain('the gateway ended with 1');
  expect(failure.match(new RegExp(`EADDRINUSE.*127.0.0.1:${port}`, 'g'))).toHaveLength(1);
});
