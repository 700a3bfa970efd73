import { Redis } from '@upstash/redis';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { type KvReply, type KvRequestOptions, kvRequest } from '../../support/kv/kv.js';
import { startReplica } from '../../support/kv/redis-replica.js';
import { type RedisServer, startRedis } from '../../support/kv/redis-server.js';
import { startRelay, type TcpRelay } from '../../support/tcp-relay.js';
import { TOKENS } from '../../support/tokens.js';

/** What the pieces of a test share: a primary, and a replica whose link can be held up. */
let primary: RedisServer;
let relay: TcpRelay;
let replica: RedisServer;
/** Two of them, as behind a balancer. */
let gateways: RunningGateway[];

const releases: (() => Promise<void>)[] = [];

beforeAll(async () => {
  primary = await startRedis({ password: 'of-the-primary' });
  relay = await startRelay(primary.port);
  replica = await startReplica(primary, { config: [`replicaof 127.0.0.1 ${relay.port}`] });
  gateways = [await gatewayFor(), await gatewayFor()];
});

afterEach(async () => {
  relay.release();
  await Promise.all(releases.splice(0).map((release) => release()));
  await readsFromReplica();
});

afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await replica.stop();
  await relay.stop();
  await primary.stop();
});

function gatewayFor(more: Record<string, unknown> = {}): Promise<RunningGateway> {
  // the password is that of url
  const database = { url: primary.url, replicas: [`redis://127.0.0.1:${replica.port}`], ...more };
  return startGateway({ kv: { databases: [database] } }, { PORTICO_REDIS_URL: '' });
}

interface Place extends KvRequestOptions {
  readonly gateway?: number;
  /** Sync token to send. */
  readonly seen?: string | undefined;
}

function run(command: readonly unknown[], { gateway = 0, seen, ...options }: Place = {}): Promise<KvReply> {
  const headers = seen === undefined ? {} : { 'Upstash-Sync-Token': seen };
  return kvRequest((gateways[gateway] as RunningGateway).url, command, { ...options, headers });
}

const tokenOf = ({ headers }: KvReply) => headers.get('upstash-sync-token') as string;

/** How often a server has executed commands, by their names; what replication brings is counted too. */
async function calls(server: RedisServer, command: string): Promise<number> {
  const stats = String(await server.command('INFO', 'commandstats'));
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

/** Which server executes a command when the request is made. */
async function serverOf(command: readonly unknown[], place?: Place): Promise<'primary' | 'replica' | 'both'> {
  const name = String(command[0]).toLowerCase();
  const count = () => Promise.all([calls(primary, name), calls(replica, name)]);
  const [primaryBefore, replicaBefore] = await count();
  expect((await run(command, place)).status).toBe(200);
  const [primaryAfter, replicaAfter] = await count();
  if (primaryAfter > primaryBefore) return replicaAfter > replicaBefore ? 'both' : 'primary';
  expect(replicaAfter).toBeGreaterThan(replicaBefore);
  return 'replica';
}

/** Waits until both gateways use the replica. */
async function readsFromReplica(): Promise<void> {
  for (const gateway of [0, 1])
    await eventually(async () => expect(await serverOf(['STRLEN', 'ready'], { gateway })).toBe('replica'));
}

it('reads what its client has written, while a replica that is behind serves others', async () => {
  await readsFromReplica();
  const first = await run(['SET', 'name', 'old']);
  // on whichever server: with the token it is the new value
  expect((await run(['GET', 'name'], { seen: tokenOf(first) })).body).toEqual({ result: 'old' });
  await eventually(async () => expect(await replica.command('GET', 'name')).toBe('old'));
  relay.hold();
  const written = await run(['SET', 'name', 'new']);
  const seen = tokenOf(written);
  expect((await run(['GET', 'name'], { seen })).body).toEqual({ result: 'new' });
  expect((await run(['GET', 'name'], { seen, gateway: 1 })).body).toEqual({ result: 'new' });
  expect(await serverOf(['GET', 'name'], { seen, gateway: 1 })).toBe('both');
  // without it, the replica answers, and it has not heard of the write
  for (const none of [undefined, '']) {
    expect((await run(['GET', 'name'], { seen: none })).body).toEqual({ result: 'old' });
    expect(await serverOf(['GET', 'name'], { seen: none })).toBe('replica');
  }
  // what a read has returned is not forgotten by its own token
  const next = tokenOf(await run(['GET', 'name'], { seen }));
  expect(next).not.toBe(seen);
  expect((await run(['GET', 'name'], { seen: next, gateway: 1 })).body).toEqual({ result: 'new' });
  relay.release();
  await eventually(async () => expect(await serverOf(['GET', 'name'], { seen, gateway: 1 })).toBe('replica'));
  expect((await run(['GET', 'name'], { seen })).body).toEqual({ result: 'new' });
});

it('leaves to the primary whoever shows a token that says nothing, and gives it one that does', async () => {
  relay.hold();
  await run(['SET', 'name', 'fresh']);
  for (const seen of [
    'of-somebody-else',
    'ab.1',
    `ab.1.${'0'.repeat(16)}.7`,
    'ab.1.x.7',
    '0',
    'a b',
    'x'.repeat(5_000),
  ]) {
    const reply = await run(['GET', 'name'], { seen });
    expect(reply.body).toEqual({ result: 'fresh' });
    expect(tokenOf(reply)).toMatch(/^\w+\.\w+\.[0-9a-f]{16}\.\d+$/);
  }
  relay.release();
  const seen = tokenOf(await run(['GET', 'name'], { seen: 'of-somebody-else' }));
  await eventually(async () => expect(await serverOf(['GET', 'name'], { seen })).toBe('replica'));
});

it('sends to the primary what writes, what may write, and what goes on where it began', async () => {
  await readsFromReplica();
  const rows = (...commands: string[][]) => commands;
  expect(await serverOf(['GET', 'k'])).toBe('replica');
  expect(await serverOf(['KEYS', 'nothing*'])).toBe('replica');
  expect(await serverOf(['SCAN', '0'])).toBe('primary');
  expect(await serverOf(['HSCAN', 'k', '0'])).toBe('primary');
  expect(await serverOf(['TOUCH', 'k'])).toBe('primary');
  expect(await serverOf(['EVAL_RO', 'return 1', '0'])).toBe('primary');
  const stats = async () => Promise.all([calls(primary, 'get'), calls(replica, 'get')]);
  const before = await stats();
  await run(rows(['GET', 'k'], ['GET', 'k']), { path: '/kv/pipeline' });
  const afterReads = await stats();
  expect(afterReads).toEqual([before[0], before[1] + 2]);
  const mixed = await run(rows(['SET', 'k', 'v'], ['GET', 'k']), { path: '/kv/pipeline' });
  expect(mixed.body).toEqual([{ result: 'OK' }, { result: 'v' }]);
  const multi = await run(rows(['GET', 'k'], ['GET', 'k']), { path: '/kv/multi-exec' });
  expect(multi.body).toEqual([{ result: 'v' }, { result: 'v' }]);
  expect(await stats()).toEqual([before[0] + 3, afterReads[1]]);
  relay.hold();
  const seen = tokenOf(await run(rows(['SET', 'k', 'w'], ['INCR', 'n']), { path: '/kv/multi-exec' }));
  expect((await run(['GET', 'k'], { seen, gateway: 1 })).body).toEqual({ result: 'w' });
  expect((await run(['GET', 'k'], { seen, gateway: 1, token: TOKENS.kvReadOnly })).body).toEqual({
    result: 'w',
  });
  const scripted = tokenOf(await run(['EVAL', "return redis.call('SET', KEYS[1], 's')", '1', 'k']));
  expect((await run(['GET', 'k'], { seen: scripted })).body).toEqual({ result: 's' });
});

it('reads what an ACL user has written', async () => {
  await primary.command('ACL', 'SETUSER', 'app', 'on', '>word-of-app', '~*', '+@all');
  const token = (await run(['ACL', 'RESTTOKEN', 'app', 'word-of-app'])).body.result as string;
  relay.hold();
  const seen = tokenOf(await run(['SET', 'by', 'app'], { token }));
  expect((await run(['GET', 'by'], { seen, gateway: 1 })).body).toEqual({ result: 'app' });
  expect((await run(['GET', 'by'], { seen, token })).body).toEqual({ result: 'app' });
});

it('reads from the primary alone when its user may not ask for the place, and refuses what that user may not', async () => {
  await primary.command('ACL', 'SETUSER', 'limited', 'on', '>word', '~*', '+@all', '-info', '-multi');
  const gateway = await gatewayFor({ url: `redis://limited:word@127.0.0.1:${primary.port}` });
  releases.push(() => gateway.stop());
  relay.hold();
  const written = await kvRequest(gateway.url, ['SET', 'name', 'limited']);
  for (const seen of ['', tokenOf(written)]) {
    const headers = { 'Upstash-Sync-Token': seen };
    expect((await kvRequest(gateway.url, ['GET', 'name'], { headers })).body).toEqual({ result: 'limited' });
  }
  const { status, body } = await kvRequest(gateway.url, [['SET', 'name', 'x']], { path: '/kv/multi-exec' });
  expect({ status, body }).toEqual({
    status: 400,
    body: { error: expect.stringMatching(/^NOPERM .*multi/) },
  });
});

it('never gives the same token twice', async () => {
  const writes = Array.from({ length: 400 }, (_, i) => run(['INCR', 'many'], { gateway: i % 2 }));
  const tokens = (await Promise.all(writes)).map(tokenOf);
  expect(new Set(tokens).size).toBe(400);
});

it('never reads an older value than its own, whatever the links do', async () => {
  const slow = await startRelay(primary.port);
  releases.push(() => slow.stop());
  const second = await startReplica(primary, { config: [`replicaof 127.0.0.1 ${slow.port}`] });
  releases.push(() => second.stop());
  const replicas = [replica, second].map(({ port }) => `redis://127.0.0.1:${port}`);
  const both = await Promise.all([gatewayFor({ replicas }), gatewayFor({ replicas })]);
  releases.push(...both.map((gateway) => () => gateway.stop()));
  let stop = false;
  let rounds = 0;
  const clients = Array.from({ length: 8 }, async (_, client) => {
    let seen = '';
    const send = async (command: unknown[], gateway: number) => {
      const headers = { 'Service-Sync-Token': seen };
      const reply = await kvRequest((both[gateway] as RunningGateway).url, command, { headers });
      expect(reply.status).toBe(200);
      seen = tokenOf(reply);
      return reply.body.result;
    };
    for (let i = 1; !stop; i++) {
      await send(['SET', `own:${client}`, String(i)], i % 2);
      for (const gateway of [1, 0, 1]) expect(await send(['GET', `own:${client}`], gateway)).toBe(String(i));
      rounds += 1;
    }
  });
  const disturb = [
    () => slow.hold(),
    () => slow.release(),
    () => relay.hold(),
    () => slow.cut(),
    () => relay.release(),
    () => relay.cut(),
    () => slow.release(),
    () => relay.release(),
  ];
  for (const act of disturb) {
    const goal = rounds + 60;
    act();
    await eventually(() => expect(rounds).toBeGreaterThan(goal));
  }
  stop = true;
  await Promise.all(clients);
  const metrics = await (await fetch(`${both[0].url}/metrics`)).text();
  const served = /portico_kv_reads_total\{database="default",result="replica"\} (\d+)/.exec(metrics);
  expect(Number(served?.[1])).toBeGreaterThan(100);
});

it('asks the primary at once while the replica is cut off or gone, and comes back to it', async () => {
  await readsFromReplica();
  relay.cut();
  await eventually(async () =>
    expect(String(await replica.command('INFO', 'replication'))).toContain('master_link_status:down'),
  );
  await run(['SET', 'k', 'of the primary']);
  expect((await run(['GET', 'k'])).body).toEqual({ result: 'of the primary' });
  await replica.command('CONFIG', 'SET', 'replica-serve-stale-data', 'no');
  await run(['SET', 'k', 'again']);
  expect((await run(['GET', 'k'])).body).toEqual({ result: 'again' });
  relay.release();
  await readsFromReplica();
  await replica.kill();
  for (let i = 0; i < 20; i++) {
    const { status, body, ms } = await run(['GET', 'k']);
    expect({ status, body }).toEqual({ status: 200, body: { result: 'again' } });
    expect(ms).toBeLessThan(PROMPT_MS);
  }
  expect((await fetch(`${gateways[0]?.url}/readyz`)).status).toBe(200);
  await replica.start();
  await readsFromReplica();
});

it('answers from the primary in time when the replica falls silent', async () => {
  const gateway = await gatewayFor({ timeoutMs: 8_000 });
  releases.push(() => gateway.stop());
  await run(['SET', 'k', 'v']);
  await eventually(async () => {
    const before = await calls(replica, 'get');
    await kvRequest(gateway.url, ['GET', 'k']);
    expect(await calls(replica, 'get')).toBeGreaterThan(before);
  });
  replica.pause();
  try {
    for (let i = 0; i < 5; i++) {
      const { status, body, ms } = await kvRequest(gateway.url, ['GET', 'k']);
      expect({ status, body }).toEqual({ status: 200, body: { result: 'v' } });
      expect(ms).toBeLessThan(8_000);
    }
    expect((await kvRequest(gateway.url, ['GET', 'k'])).ms).toBeLessThan(2_000);
  } finally {
    replica.resume();
  }
});

it('serves @upstash/redis: it reads its own writes, on another gateway too', async () => {
  const client = (gateway: number) =>
    new Redis({ url: `${gateways[gateway]?.url}/kv`, token: TOKENS.kv, enableAutoPipelining: false });
  const redis = client(0);
  await redis.set('sdk', 'one');
  await eventually(async () => expect(await replica.command('GET', 'sdk')).toBe('one'));
  relay.hold();
  await redis.set('sdk', 'two');
  expect(await redis.get('sdk')).toBe('two');
  expect(await redis.get('sdk')).toBe('two');
  expect(await client(1).get('sdk')).toBe('one');
});

it('refuses settings that contradict each other', async () => {
  const problem = (more: Record<string, unknown>) =>
    gatewayFor(more).then(
      () => 'none',
      (error: Error) => error.message,
    );
  expect(await problem({ readFromReplicas: true })).toMatch(
    /databases\[0\]\.readFromReplicas: needs sentinels/,
  );
  expect(await problem({ sentinels: ['127.0.0.1:26379'] })).toMatch(
    /databases\[0\]\.replicas: with sentinels/,
  );
  expect(await problem({ replicas: ['redis://127.0.0.1/3'] })).toMatch(/replicas: expected the same number/);
  expect(await problem({ replicas: ['http://127.0.0.1'] })).toMatch(
    /replicas\[0\]: expected a URL that starts with/,
  );
  expect(await problem({ replicas: [], sentinels: ['here'] })).toMatch(/sentinels\[0\]: expected host:port/);
});
