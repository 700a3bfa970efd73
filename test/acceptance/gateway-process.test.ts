import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gatewayEnvironment } from '../support/environment.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { RawClient } from '../support/raw-client.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';

const KEY = 'gateway-process:count';

const command = async (gateway: SpawnedGateway, words: readonly string[]) => {
  const reply = await fetch(`${gateway.url}/kv`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.kv}` },
    body: JSON.stringify(words),
  });
  return { status: reply.status, body: (await reply.json()) as { result?: unknown } };
};

/** Runs the gateway until it ends by itself. */
async function runToEnd(args: readonly string[], environment: Record<string, string>) {
  const child = spawn(process.execPath, ['dist/main.js', ...args], {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number];
  return { code, output };
}

it('ends on SIGTERM under load within its cap, and every increment that it answered is there', async () => {
  const gateway = await spawnGateway({ kv: {} });
  await command(gateway, ['DEL', KEY]);
  let answered = 0;
  let failed = 0;
  const client = async () => {
    for (;;) {
      try {
        const { status } = await command(gateway, ['INCR', KEY]);
        if (status === 200) answered += 1;
        else failed += 1;
      } catch {
        return; // the port is closed
      }
    }
  };
  const clients = Array.from({ length: 16 }, client);
  await eventually(() => expect(answered).toBeGreaterThan(500));
  const started = performance.now();
  const code = await gateway.stop();
  expect(performance.now() - started).toBeLessThan(20_000);
  await Promise.all(clients);
  expect({ code, failed }).toEqual({ code: 0, failed: 0 });

  const next = await spawnGateway({ kv: {} });
  // whose connection was cut before a reply cannot know whether its increment ran: at most one a client
  const count = Number((await command(next, ['GET', KEY])).body.result);
  expect(count).toBeGreaterThanOrEqual(answered);
  expect(count).toBeLessThanOrEqual(answered + clients.length);
  await command(next, ['DEL', KEY]);
  expect(await next.stop()).toBe(0);
});

it.each([1, 2])('drains on SIGINT, as a terminal sends it (%d processes)', async (workers) => {
  const gateway = await spawnGateway({ kv: {}, http: { workers } });
  const client = await RawClient.open(Number(new URL(gateway.url).port));
  const head = `POST /kv HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKENS.kv}\r\nContent-Length: 8\r\n\r\n`;
  client.write(`${head}["PI`);
  await eventually(async () =>
    expect(await (await fetch(`${gateway.url}/metrics`)).text()).toMatch(/requests_in_flight 2/),
  );
  // of several processes once
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(text).toContain(`portico_build_info{version="0.1.0",node="${process.versions.node}"} 1`);
  const exited = once(gateway.process, 'exit');
  gateway.process.kill('SIGINT');
  await eventually(async () =>
    expect(await fetch(`${gateway.url}/livez`).catch(() => 'closed')).toBe('closed'),
  );
  client.write('NG"]');
  expect(await client.closed()).toContain('{"result":"PONG"}');
  expect(await exited).toEqual([0, null]);
});

describe.each([1, 2])('SIGHUP (%d processes)', (workers) => {
  const [first, second] = ['the-first-token-of-this-database', 'the-second-token-of-this-database'] as const;
  let folder: string;
  let tokenFile: string;
  let gateway: SpawnedGateway;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portico-test-'));
    tokenFile = join(folder, 'token');
    await writeFile(tokenFile, `${first}\n`);
    const environment = { PORTICO_KV_TOKEN: '', PORTICO_KV_TOKEN_FILE: tokenFile };
    gateway = await spawnGateway({ kv: {}, http: { workers } }, environment);
  });
  afterAll(async () => {
    await gateway?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Statuses of so many requests, each on a connection of its own: every process gets some. */
  const statuses = async (token: string) => {
    const one = async () => {
      const headers = { authorization: `Bearer ${token}`, connection: 'close' };
      const reply = await fetch(`${gateway.url}/kv`, { method: 'POST', headers, body: '["PING"]' });
      await reply.text();
      return reply.status;
    };
    return new Set(await Promise.all(Array.from({ length: 20 }, one)));
  };
  const said = (msg: string) => gateway.lines.filter((line) => line.includes(`"msg":"${msg}"`));
  const hangUp = async (msg: string) => {
    const before = said(msg).length;
    gateway.process.kill('SIGHUP');
    await eventually(() => expect(said(msg).length).toBe(before + 1));
  };

  it('takes a new token, and the old one no longer', async () => {
    expect([await statuses(first), await statuses(second)]).toEqual([new Set([200]), new Set([401])]);
    await writeFile(tokenFile, second);
    await hangUp('configuration read again');
    await eventually(async () => expect(await statuses(first)).toEqual(new Set([401])));
    expect(await statuses(second)).toEqual(new Set([200]));
    expect(said('configuration read again').at(-1)).toContain('"changed":["kv.databases[0].token"]');
  });

  it('changes nothing when the configuration is wrong, and says what', async () => {
    const document = await readFile(gateway.file, 'utf8');
    await writeFile(tokenFile, first);
    await writeFile(gateway.file, document.replace('http:', 'htpt: {}\nhttp:'));
    await hangUp('the configuration was read again and is not usable: nothing has changed');
    expect(gateway.lines.at(-1)).toMatch(/htpt: unknown key; did you mean http\?/);
    expect(await statuses(second)).toEqual(new Set([200]));
    await writeFile(gateway.file, document);
    await writeFile(tokenFile, second);
  });

  it('names what waits for the next start', async () => {
    const document = await readFile(gateway.file, 'utf8');
    await writeFile(gateway.file, document.replace('http:', 'http:\n  maxInFlight: 77'));
    await hangUp('these keys have new values, which wait for the next start');
    expect(said('these keys have new values, which wait for the next start')[0]).toContain(
      '"keys":["http.maxInFlight"]',
    );
    await writeFile(gateway.file, document);
  });

  it('a process that is started later has the new token', async () => {
    if (workers > 1) {
      const { pid } = gateway.process;
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
        .trim()
        .split(' ')
        .map(Number);
      for (const child of children) process.kill(child, 'SIGKILL');
    } else gateway.process.kill('SIGHUP');
    await eventually(async () => expect(await statuses(second)).toEqual(new Set([200])));
    expect(await statuses(first)).toEqual(new Set([401]));
    const log = gateway.lines.join('\n');
    expect([log.includes(first), log.includes(second)]).toEqual([false, false]);
    expect(await gateway.stop()).toBe(0);
  });
});

it.each([1, 2])('opens no inspector on SIGUSR1 (%d processes)', async (workers) => {
  const gateway = await spawnGateway({ kv: {}, http: { workers } });
  const { pid } = gateway.process;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean);
  for (const each of [pid as number, ...children.map(Number)]) process.kill(each, 'SIGUSR1');
  expect((await command(gateway, ['PING'])).status).toBe(200);
  expect(await gateway.stop()).toBe(0);
  expect(gateway.lines.join('\n')).not.toMatch(/debugger/i);
});

it('serves on when its log cannot be written any more', async () => {
  const port = await freePort();
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, ['dist/main.js'], {
    env: {
      PATH: process.env.PATH,
      ...gatewayEnvironment(),
      PORTICO_HTTP_PORT: String(port),
      PORTICO_VECTOR_ENABLED: 'false',
      PORTICO_BROKER_ENABLED: 'false',
      PORTICO_QUEUE_ENABLED: 'false',
    },
    stdio: ['ignore', full, 'ignore'],
  });
  closeSync(full);
  const exited = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  await eventually(async () => expect((await fetch(`${url}/livez`)).status).toBe(200));
  for (let i = 0; i < 3; i++) expect((await fetch(`${url}/readyz`)).status).toBe(200);
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
});

it('is served again after kill -9, on the same port', async () => {
  const first = await spawnGateway({ kv: {} });
  expect((await command(first, ['SET', KEY, 'kept'])).status).toBe(200);
  const port = Number(new URL(first.url).port);
  await first.kill();
  const second = await spawnGateway({ kv: {}, http: { port } });
  expect((await command(second, ['GETDEL', KEY])).body).toEqual({ result: 'kept' });
  expect(await second.stop()).toBe(0);
});

it('logs JSON lines without tokens, values or paths', async () => {
  const gateway = await spawnGateway({ kv: {}, log: { level: 'trace' } });
  await command(gateway, ['SET', KEY, 'a-secret-value']);
  await fetch(`${gateway.url}/kv/get/a-secret-key?_token=${TOKENS.kv}`);
  await fetch(`${gateway.url}/kv/get/a-secret-key?_token=a-wrong-token`);
  await command(gateway, ['DEL', KEY]);
  await gateway.stop();
  const log = gateway.lines.join('\n');
  for (const line of gateway.lines) expect(JSON.parse(line)).toHaveProperty('msg');
  expect(log).toContain('listening');
  expect(log).not.toMatch(/a-secret|a-wrong-token/);
  for (const token of Object.values(TOKENS)) expect(log).not.toContain(token);
});

it('names every mistake of a configuration and ends with 78', async () => {
  const { code, output } = await runToEnd(['--config', 'nowhere.yaml'], gatewayEnvironment());
  expect({ code, output }).toEqual({
    code: 78,
    output: expect.stringContaining('nowhere.yaml: cannot be read (ENOENT)'),
  });
  const empty = await runToEnd(['run'], {});
  expect(empty).toEqual({
    code: 78,
    output: expect.stringMatching(/no service has the address.*PORTICO_REDIS_URL/),
  });
  const { PORTICO_VECTOR_TOKEN: _, PORTICO_QUEUE_TOKEN: __, ...others } = gatewayEnvironment();
  const missing = await runToEnd(['run'], others);
  expect(missing.code).toBe(78);
  expect(missing.output).toMatch(/vector\.indexes\[0\]\.token[\s\S]*queue\.token/);
  const unreadable = { ...gatewayEnvironment(), PORTICO_KV_DATABASES_0_TLS_CA: '/nowhere/ca.pem' };
  expect(await runToEnd(['run'], unreadable)).toEqual({
    code: 78,
    output: expect.stringMatching(
      /PORTICO_KV_DATABASES_0_TLS_CA: .*tls\.ca: the file cannot be read \(ENOENT\)/,
    ),
  });
});

it('serves what it has an address for, with nothing but that, and says what is off', async () => {
  const { PORTICO_REDIS_URL = '' } = gatewayEnvironment();
  const document = { kv: {}, vector: {}, broker: {}, queue: {} };
  const others = { PORTICO_DATABASE_URL: '', PORTICO_KAFKA_BROKERS: '', PORTICO_RABBITMQ_URL: '' };
  const gateway = await spawnGateway(document, { ...others, PORTICO_REDIS_URL });
  expect((await command(gateway, ['SET', KEY, '1'])).status).toBe(200);
  expect((await command(gateway, ['DEL', KEY])).status).toBe(200);
  for (const path of ['/vector/info', '/broker/topics', '/queue/v2/queues'])
    expect((await fetch(`${gateway.url}${path}`)).status).toBe(404);
  expect(await (await fetch(`${gateway.url}/readyz`)).json()).toEqual({
    status: 'up',
    services: { kv: { status: 'up' } },
  });
  expect(await gateway.stop()).toBe(0);
  const said = gateway.lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  for (const service of ['vector', 'broker', 'queue'])
    expect(said.filter((line) => line.startsWith(`${service} is off: `))).toHaveLength(1);
});

it('tells the log, whole and once, why a backend could not be started', async () => {
  const reason = `redis: ${'no such package at mirror.example; '.repeat(100)}`;
  const gateway = await spawnGateway({ kv: {}, http: { workers: 2 } }, { PORTICO_KV_MISSING: reason });
  expect(gateway.lines.filter((line) => line.includes(JSON.stringify(reason)))).toHaveLength(1);
  expect((await command(gateway, ['PING'])).status).toBe(200);
  expect(await gateway.stop()).toBe(0);
});

it('names a port that is taken and ends with 1', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, output } = await runToEnd(['run'], {
    ...gatewayEnvironment(),
    PORTICO_HTTP_PORT: String(port),
    PORTICO_VECTOR_ENABLED: 'false',
    PORTICO_BROKER_ENABLED: 'false',
    PORTICO_QUEUE_ENABLED: 'false',
  });
  other.close();
  expect(code).toBe(1);
  expect(output).toContain(`address already in use 127.0.0.1:${port}`);
});
