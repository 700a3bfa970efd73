import { createLogger, type Logger } from '../../../src/lib/logger.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { type KvReply, kvRequest } from '../../support/kv/kv.js';
import {
  type SentinelGroup,
  type SentinelOptions,
  startSentinels,
} from '../../support/kv/redis-sentinels.js';
import type { RedisServer } from '../../support/kv/redis-server.js';
import { OPERATOR_VARIABLES, operatorPage } from '../../support/operator.js';
import { stopAfterEach } from '../../support/stop-after-each.js';

const PASSWORD = 'of-the-servers';
/** After the Sentinels' switch; connecting to a Sentinel that is gone takes `connectTimeoutMs` of it. */
const FOLLOWED_MS = 30_000;

const stopLater = stopAfterEach();

async function startGroup(options: SentinelOptions = {}): Promise<SentinelGroup> {
  const group = stopLater(await startSentinels({ password: PASSWORD, ...options }));
  for (const sentinel of group.sentinels) {
    // on a busy machine a replica is heard too late to be chosen (5 pings), and the next try comes after 2 timeouts
    await sentinel.command('SENTINEL', 'DEBUG', 'ping-period', '300');
    await sentinel.command('SENTINEL', 'SET', group.name, 'failover-timeout', '3000');
  }
  return group;
}

async function gatewayFor(
  group: SentinelGroup,
  more: Record<string, unknown> = {},
  log?: Logger,
): Promise<string> {
  const database = {
    url: `redis://:${PASSWORD}@${group.name}`,
    sentinels: group.sentinels.map(({ port }) => `127.0.0.1:${port}`),
    ...more,
  };
  const settings = { kv: { databases: [database] } };
  const gateway = stopLater(
    await startGateway(settings, { ...OPERATOR_VARIABLES, PORTICO_REDIS_URL: '' }, log),
  );
  await eventually(async () => expect((await kvRequest(gateway.url, ['PING'])).status).toBe(200));
  return gateway.url;
}

async function switched(group: SentinelGroup, from: RedisServer): Promise<RedisServer> {
  return eventually(async () => {
    const primary = await group.primary();
    expect(primary).not.toBe(from);
    return primary;
  });
}

/** How often a server has executed a command since its start. */
async function callsOf(server: RedisServer, command: string): Promise<number> {
  const stats = String(await server.command('INFO', 'commandstats'));
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

it('goes on with the new primary after the old one was killed, and leaves that alone when it is back', async () => {
  const group = await startGroup();
  const url = await gatewayFor(group, { timeoutMs: 20_000 });
  const old = await group.primary();
  const statuses = new Map<number, number>();
  let stop = false;
  let worked = 0;
  const clients = Array.from({ length: 10 }, async () => {
    while (!stop) {
      const { status, body, headers, ms } = await kvRequest(url, ['INCR', 'count']);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      expect(ms).toBeLessThan(PROMPT_MS);
      if (status === 200) worked = performance.now();
      else {
        expect([502, 503]).toContain(status);
        expect(body.error).toMatch(status === 503 ? /nothing was executed/ : /unknown/);
        expect(headers.get('retry-after') === null).toBe(status === 502);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  });
  await eventually(() => expect(statuses.get(200) ?? 0).toBeGreaterThan(100));
  await old.kill();
  const primary = await switched(group, old);
  const switchedAt = performance.now();
  await eventually(() => expect(worked).toBeGreaterThan(switchedAt), FOLLOWED_MS);
  await old.start();
  await eventually(async () => expect(String(await old.command('ROLE'))).toMatch(/^slave/));
  const before = statuses.get(200) ?? 0;
  await eventually(() => expect(statuses.get(200) ?? 0).toBeGreaterThan(before + 100));
  stop = true;
  await Promise.all(clients);
  expect(await callsOf(primary, 'incr')).toBeGreaterThan(100);
  // what it got by replication was counted too: it never came from a client
  expect(String(await old.command('CLIENT', 'LIST', 'TYPE', 'NORMAL'))).not.toContain('name=portico');
});

it('gives up a primary that is silent as soon as the Sentinels have another, with all its connections', async () => {
  const group = await startGroup();
  for (const server of group.servers)
    await server.command('ACL', 'SETUSER', 'app', 'on', '>word-of-app', '~*', '+@all');
  // its own deadline would be far later
  const url = await gatewayFor(group, { timeoutMs: 60_000, connectTimeoutMs: 60_000 });
  const { body } = await kvRequest(url, ['ACL', 'RESTTOKEN', 'app', 'word-of-app']);
  const token = body.result as string;
  expect((await kvRequest(url, ['SET', 'by', 'app'], { token })).status).toBe(200);
  const old = await group.primary();
  const waits = kvRequest(url, ['XREAD', 'BLOCK', '50000', 'STREAMS', 'events', '$']);
  await eventually(async () =>
    expect(String(await old.command('CLIENT', 'LIST'))).toMatch(/flags=\w*b\w* .*cmd=xread/),
  );
  old.pause();
  const stalled = [kvRequest(url, ['INCR', 'count']), kvRequest(url, ['INCR', 'count'], { token }), waits];
  const primary = await switched(group, old);
  const switchedAt = performance.now();
  for (const { status, body: answer } of await Promise.all(stalled))
    expect({ status, answer }).toEqual({ status: 502, answer: { error: expect.stringMatching(/unknown/) } });
  await eventually(async () => expect((await kvRequest(url, ['SET', 'k', 'v'])).status).toBe(200));
  await eventually(async () => expect((await kvRequest(url, ['SET', 'k', 'v'], { token })).status).toBe(200));
  expect(performance.now() - switchedAt).toBeLessThan(FOLLOWED_MS);
  const next = kvRequest(url, ['XREAD', 'BLOCK', '5000', 'STREAMS', 'events', '$']);
  await eventually(async () =>
    expect(String(await primary.command('CLIENT', 'LIST'))).toMatch(/flags=\w*b\w* .*cmd=xread/),
  );
  await kvRequest(url, ['XADD', 'events', '1-1', 'a', 'b']);
  expect((await next).body.result).toEqual([['events', [['1-1', ['a', 'b']]]]]);
});

it('is not held up by a Sentinel that falls silent together with the primary', async () => {
  const group = await startGroup();
  const url = await gatewayFor(group, { timeoutMs: 60_000, connectTimeoutMs: 1_000 });
  const old = await group.primary();
  // the one that tells the test who is primary stays
  group.sentinels[2]?.pause();
  old.pause();
  const stalled = kvRequest(url, ['INCR', 'count']);
  await switched(group, old);
  await eventually(
    async () => expect((await kvRequest(url, ['SET', 'k', 'v'])).status).toBe(200),
    FOLLOWED_MS,
  );
  expect((await stalled).status).toBe(502);
});

it('takes READONLY for a change of roles: 503, and it asks the Sentinels anew', async () => {
  const group = await startGroup();
  const url = await gatewayFor(group);
  const old = await group.primary();
  const replica = group.servers.find((server) => server !== old) as RedisServer;
  await old.command('REPLICAOF', '127.0.0.1', replica.port);
  const refused = await kvRequest(url, ['SET', 'k', 'v']);
  expect({ status: refused.status, body: refused.body }).toEqual({
    status: 503,
    body: { error: expect.stringMatching(/no longer the primary; nothing was executed/) },
  });
  expect(refused.headers.get('retry-after')).toBe('1');
  // a replica is no primary, though the Sentinels name it still: nobody is given READONLY
  for (let i = 0; i < 20; i++) {
    const { status } = await kvRequest(url, ['SET', 'k', 'v']);
    expect([200, 503]).toContain(status);
  }
  await eventually(async () => expect((await kvRequest(url, ['SET', 'k', 'v'])).status).toBe(200));
});

it('goes on while no Sentinel is there, and says why when it needs one', async () => {
  const group = await startGroup();
  const lines: string[] = [];
  const log = createLogger('info', { write: (line) => void lines.push(line) });
  const url = await gatewayFor(group, {}, log);
  await Promise.all(group.sentinels.map((sentinel) => sentinel.kill()));
  for (let i = 0; i < 20; i++) expect((await kvRequest(url, ['SET', 'k', 'v'])).status).toBe(200);
  await group.servers[0]?.command('CLIENT', 'KILL', 'TYPE', 'NORMAL', 'SKIPME', 'YES');
  await eventually(() =>
    expect(lines.join('')).toMatch(/no Sentinel names a server.*failed to connect to sentinel/),
  );
  expect((await kvRequest(url, ['PING'])).status).toBe(503);
  expect((await operatorPage(url, '/readyz')).text).toContain('not connected (ESENTINEL)');
  await Promise.all(group.sentinels.map((sentinel) => sentinel.start()));
  await eventually(async () => expect((await kvRequest(url, ['PING'])).status).toBe(200));
});

it('finds servers with TLS by Sentinels with TLS and a password of their own', async () => {
  const group = await startGroup({ tls: 'mutual', sentinelPassword: 'of-the-sentinels' });
  const { ca, clientCert: cert, clientKey: key } = group.servers[0]?.certificates ?? {};
  const settings = {
    url: `rediss://:${PASSWORD}@${group.name}/1`,
    tls: { ca, cert, key },
    sentinelTls: true,
  };
  const url = await gatewayFor(group, { ...settings, sentinelPassword: 'of-the-sentinels' });
  expect((await kvRequest(url, ['SET', 'k', 'v'])).status).toBe(200);
  const old = await group.primary();
  await old.kill();
  await switched(group, old);
  await eventually(async () => expect((await kvRequest(url, ['GET', 'k'])).status).toBe(200), FOLLOWED_MS);
});

it('reads from replicas that the Sentinels name; tokens of before a failover still hold after it', async () => {
  const group = await startGroup({ replicas: 2 });
  const url = await gatewayFor(group, { readFromReplicas: true });
  const other = await gatewayFor(group, { readFromReplicas: true });
  const read = (seen: string, at = url) =>
    kvRequest(at, ['GET', 'name'], { headers: { 'Upstash-Sync-Token': seen } });
  const tokenOf = ({ headers }: KvReply) => headers.get('upstash-sync-token') as string;
  const replicaReads = async () => {
    const metrics = (await operatorPage(url, '/metrics')).text;
    return Number(/kv_reads_total\{database="default",result="replica"\} (\d+)/.exec(metrics)?.[1]);
  };
  const isReadFromReplica = async (seen: string) => {
    const before = await replicaReads();
    expect((await read(seen)).body).toEqual({ result: 'written' });
    expect(await replicaReads()).toBeGreaterThan(before);
  };
  const written = tokenOf(await kvRequest(url, ['SET', 'name', 'written']));
  expect((await read(written, other)).body).toEqual({ result: 'written' });
  await eventually(() => isReadFromReplica(written));
  const old = await group.primary();
  await old.kill();
  await switched(group, old);
  const after = await eventually(async () => {
    const reply = await read(written, other);
    expect(reply.body).toEqual({ result: 'written' });
    return reply;
  }, FOLLOWED_MS);
  expect(tokenOf(after).split('.')[2]).not.toBe(written.split('.')[2]);
  await eventually(() => isReadFromReplica(tokenOf(after)));
});
