import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { kvCaller } from '../../support/kv/kv.js';
import { type RedisCluster, startCluster } from '../../support/kv/redis-cluster.js';
import type { RedisServer } from '../../support/kv/redis-server.js';
import { TOKENS } from '../../support/tokens.js';

const PASSWORD = 'cluster-password-0123456789';

let cluster: RedisCluster;
let gateway: RunningGateway;

interface Answer {
  readonly status: number;
  readonly body: { result?: unknown; error?: string };
  readonly text: string;
}

async function post(
  path: string,
  body: unknown,
  token: string = TOKENS.kv,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`${gateway.url}/kv${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: JSON.parse(text), text };
}

const run = (command: unknown, token?: string) => post('', command, token);
const result = async (...command: unknown[]) => (await run(command)).body.result;
const pipeline = (rows: unknown, token?: string) => post('/pipeline', rows, token);
const transaction = (rows: unknown, token?: string) => post('/multi-exec', rows, token);

const slotOf = async (key: string) => Number(await cluster.primaries[0]?.command('CLUSTER', 'KEYSLOT', key));
/** Each third of the slots is at one primary, in order. */
const primaryOf = async (key: string) =>
  cluster.primaries[Math.floor(((await slotOf(key)) * 3) / 16_384)] as RedisServer;
const names = (count: number, prefix = 'key') => Array.from({ length: count }, (_, i) => `${prefix}:${i}`);

beforeAll(async () => {
  cluster = await startCluster({ password: PASSWORD });
  gateway = await startGateway(
    { kv: { databases: [{ cluster: true }] } },
    { PORTICO_REDIS_URL: cluster.url },
  );
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});

afterAll(async () => {
  await gateway?.stop();
  await cluster?.stop();
});

beforeEach(async () => {
  expect(await result('FLUSHALL')).toBe('OK');
});

describe('commands', () => {
  test('go to the primary of their key, wherever it stands among the arguments', async () => {
    for (const key of names(50)) {
      expect(await result('SET', key, `value of ${key}`)).toBe('OK');
      expect(await result('EVAL', 'return redis.call("GET", KEYS[1])', 1, key)).toBe(`value of ${key}`);
      expect(await result('OBJECT', 'ENCODING', key)).toBe('embstr');
      expect(await (await primaryOf(key)).command('GET', key)).toBe(`value of ${key}`);
    }
    expect(await result('XADD', 'stream', '1-1', 'field', 'value')).toBe('1-1');
    expect(await result('XGROUP', 'CREATE', 'stream', 'group', '0')).toBe('OK');
    const read = ['XREADGROUP', 'GROUP', 'group', 'me', 'COUNT', '1', 'STREAMS', 'stream', '>'];
    expect(await result(...read)).toEqual([['stream', [['1-1', ['field', 'value']]]]]);
    await result('ZADD', '{z}a', 1, 'm');
    expect(await result('ZUNIONSTORE', '{z}c', 2, '{z}a', '{z}b')).toBe(1);
  });

  test('keep their replies exact: bytes, 64 bits, nil, errors', async () => {
    expect((await run(`["SET","n",9223372036854775806]`)).text).toBe('{"result":"OK"}');
    expect((await run(['INCR', 'n'])).text).toBe('{"result":9223372036854775807}');
    expect((await run(['INCR', 'n'])).status).toBe(400);
    const bytes = Buffer.from([0, 255, 13, 10, 128]);
    const headers = { authorization: `Bearer ${TOKENS.kv}` };
    const key = '/set/%FF%00%7Btag%7D';
    expect((await fetch(`${gateway.url}/kv${key}`, { method: 'POST', body: bytes, headers })).status).toBe(
      200,
    );
    const got = await fetch(`${gateway.url}/kv/get/%FF%00%7Btag%7D`, {
      headers: { ...headers, 'Upstash-Encoding': 'base64' },
    });
    expect(await got.json()).toEqual({ result: bytes.toString('base64') });
    expect((await run(['GET', 'none'])).text).toBe('{"result":null}');
    expect((await run(['GET'])).body.error).toMatch(/^ERR wrong number of arguments/);
  });

  test('that name keys of several slots are split where nothing is lost by it', async () => {
    const keys = names(100);
    await pipeline(keys.map((key, i) => ['SET', key, i]));
    expect(await result('MGET', 'none', ...keys, 'key:7')).toEqual([
      null,
      ...keys.map((_, i) => `${i}`),
      '7',
    ]);
    expect(await result('EXISTS', 'key:1', 'key:1', 'none', 'key:2')).toBe(3);
    expect(await result('TOUCH', ...keys)).toBe(100);
    expect(await result('DEL', ...keys.slice(0, 60), 'none')).toBe(60);
    expect(await result('UNLINK', ...keys)).toBe(40);
    for (const command of [
      ['MSET', 'a', '1', 'b', '2'],
      ['SINTER', 'a', 'b'],
      ['RENAME', 'a', 'b'],
    ])
      expect(await run(command)).toMatchObject({
        status: 400,
        body: { error: "CROSSSLOT Keys in request don't hash to the same slot" },
      });
    expect(await result('MSET', '{t}a', '1', '{t}b', '2')).toBe('OK');
    expect(await result('DEL')).toBeUndefined();
  });

  test('that concern the whole database reach every primary', async () => {
    const keys = names(300);
    await pipeline(keys.map((key) => ['SET', key, 'x']));
    expect(await result('DBSIZE')).toBe(300);
    expect(((await result('KEYS', '*')) as string[]).sort()).toEqual([...keys].sort());
    expect(keys).toContain(await result('RANDOMKEY'));
    expect(await result('FLUSHDB')).toBe('OK');
    for (const primary of cluster.primaries) expect(await primary.command('DBSIZE')).toBe(0);
    expect(await result('RANDOMKEY')).toBeNull();
    expect(await result('PING')).toBe('PONG');
    expect(await result('INFO', 'server')).toContain('redis_mode:cluster');
  });

  test('SCAN finds every key once, with and without types', async () => {
    const keys = names(1_000);
    await pipeline(keys.map((key) => ['SET', key, 'x']));
    for (const options of [['COUNT', '50'], [], ['COUNT', '200', 'WITHTYPE']]) {
      const found: string[] = [];
      let cursor = '0';
      do {
        const [next, page] = (await result('SCAN', cursor, ...options)) as [string, string[]];
        found.push(...page.filter((word) => word !== 'string'));
        cursor = next;
        expect(BigInt(cursor)).toBeLessThan(2n ** 64n);
      } while (cursor !== '0');
      expect(found.sort()).toEqual([...keys].sort());
    }
    expect((await run(['SCAN', 'x'])).body.error).toMatch(/^ERR invalid cursor/);
  });

  test('scripts and functions are known to every primary', async () => {
    const sha = await result('SCRIPT', 'LOAD', 'return redis.call("INCR", KEYS[1])');
    expect(await result('SCRIPT', 'EXISTS', sha, '0'.repeat(40))).toEqual([1, 0]);
    for (const key of names(10)) expect(await result('EVALSHA', sha, 1, key)).toBe(1);
    expect(await result('SCRIPT', 'FLUSH')).toBe('OK');
    expect((await run(['EVALSHA', sha, 1, 'key:1'])).body.error).toMatch(/^NOSCRIPT/);
    const library =
      '#!lua name=lib\nredis.register_function("f", function(keys) return redis.call("INCR", keys[1]) end)';
    expect(await result('FUNCTION', 'LOAD', library)).toBe('lib');
    for (const key of names(10)) expect(await result('FCALL', 'f', 1, key)).toBe(2);
    expect((await run(['FUNCTION', 'LOAD', library])).body.error).toMatch(/already exists/);
    expect(await result('FUNCTION', 'DELETE', 'lib')).toBe('OK');
  });
});

describe('pipelines and transactions', () => {
  test('a pipeline over all nodes answers in the order of its rows, and keeps the order for a key', async () => {
    const keys = names(200);
    const rows = keys.flatMap((key, i) => [
      ['RPUSH', key, i],
      ['RPUSH', key, 'second'],
      ['LRANGE', key, 0, -1],
      ['GET', key],
      ['ECHO', key],
    ]);
    const { body } = await pipeline([...rows, ['BLPOP', 'x', 0], ['DBSIZE'], []]);
    const wrong = { error: expect.stringMatching(/^WRONGTYPE/) };
    expect(body).toEqual([
      ...keys.flatMap((key, i) => [
        { result: 1 },
        { result: 2 },
        { result: [`${i}`, 'second'] },
        wrong,
        { result: key },
      ]),
      { error: expect.stringMatching(/not available/) },
      { result: 200 },
      { error: 'ERR empty command' },
    ]);
  });

  test('a transaction runs when its keys are in one slot, and nothing of it otherwise', async () => {
    const { text } = await transaction([
      ['SET', '{t}a', '1'],
      ['LPUSH', '{t}a', 'x'],
      ['EVAL', 'return redis.call("INCR", KEYS[1])', 1, '{t}a'],
      ['PUBLISH', 'channel', 'message'],
    ]);
    expect(JSON.parse(text)).toEqual([
      { result: 'OK' },
      { error: expect.stringMatching(/^WRONGTYPE/) },
      { result: 2 },
      { result: 0 },
    ]);
    expect(await transaction([['SET', '{t}a', '5'], ['SET', 'b', '5'], ['NOPE']])).toMatchObject({
      status: 400,
      body: { error: "CROSSSLOT Keys in request don't hash to the same slot" },
    });
    for (const row of [['FLUSHALL'], ['DBSIZE'], ['SCAN', '0'], ['GET'], ['NOPE']])
      expect((await transaction([['SET', '{t}a', '5'], row])).status).toBe(400);
    expect(await result('GET', '{t}a')).toBe('2');
    expect((await transaction([['ECHO', 'x']])).text).toBe('[{"result":"x"}]');
  });

  test('concurrent requests of all kinds do not mix', async () => {
    const work = Array.from({ length: 300 }, async (_, i) => {
      if (i % 3 === 0) {
        const rows = [
          ['SET', `{mix${i}}a`, i],
          ['GET', `{mix${i}}a`],
        ];
        expect((await transaction(rows)).text).toBe(`[{"result":"OK"},{"result":"${i}"}]`);
      } else if (i % 3 === 1) {
        const { body } = await pipeline(names(20, `p${i}`).map((key) => ['SETNX', key, '1']));
        expect(body).toEqual(names(20).map(() => ({ result: 1 })));
      } else expect(await result('ECHO', `echo ${i}`)).toBe(`echo ${i}`);
    });
    await Promise.all(work);
  });
});

describe('slots that move', () => {
  const [from, to] = [0, 2];
  const nodeId = async (i: number) => String(await cluster.primaries[i]?.command('CLUSTER', 'MYID'));
  const tag = '{moved slot}';
  let slot: number;

  /** To the third primary and back. */
  async function setSlot(owner: number): Promise<void> {
    const id = await nodeId(owner);
    for (const primary of [cluster.primaries[owner], ...cluster.primaries])
      await primary?.command('CLUSTER', 'SETSLOT', slot, 'NODE', id);
  }

  async function startMoving(source: number, target: number): Promise<void> {
    await cluster.primaries[target]?.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await nodeId(source));
    await cluster.primaries[source]?.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await nodeId(target));
  }

  async function moveKeys(source: number, target: number): Promise<void> {
    const port = cluster.primaries[target]?.port as number;
    for (;;) {
      const server = cluster.primaries[source] as RedisServer;
      const keys = (await server.command('CLUSTER', 'GETKEYSINSLOT', slot, 5)) as string[];
      if (keys.length === 0) return;
      const login = ['AUTH', PASSWORD];
      await server.command('MIGRATE', '127.0.0.1', port, '', 0, 5_000, ...login, 'KEYS', ...keys);
    }
  }

  beforeAll(async () => {
    slot = await slotOf(tag);
    const owner = Math.floor((slot * 3) / 16_384);
    if (owner === from) return;
    // who takes over a slot that it imports claims it with a newer epoch: else the old owner's gossip may take it back
    await startMoving(owner, from);
    await setSlot(from);
  });

  test('under load: every command runs once, singles, pipelines and transactions', async () => {
    const counts = new Map<string, number>();
    let stop = false;
    const clients = names(8, tag).map(async (key, i) => {
      let count = 0;
      while (!stop) {
        const rows = [
          ['INCR', key],
          ['INCR', key],
        ];
        if (i % 3 === 0) {
          expect((await run(['INCR', key])).text).toBe(`{"result":${count + 1}}`);
          count += 1;
        } else {
          const { text } = i % 3 === 1 ? await pipeline(rows) : await transaction(rows);
          expect(text).toBe(`[{"result":${count + 1}},{"result":${count + 2}}]`);
          count += 2;
        }
        counts.set(key, count);
      }
    });
    const progress = async () => {
      const seen = new Map(counts);
      await eventually(() => {
        for (const key of names(8, tag)) expect(counts.get(key)).toBeGreaterThan((seen.get(key) ?? 0) + 5);
      });
    };
    try {
      await progress();
      for (const [source, target] of [
        [from, to],
        [to, from],
      ] as const) {
        await startMoving(source, target);
        await progress();
        await moveKeys(source, target);
        await progress();
        await setSlot(target);
        await progress();
      }
    } finally {
      stop = true;
      await Promise.all(clients);
    }
    for (const [key, count] of counts) expect(await result('GET', key)).toBe(String(count));
  });

  test('half moved: keys are found on either side, and what needs both is told to come again', async () => {
    await result('SET', `${tag}old`, 'old');
    await startMoving(from, to);
    try {
      const rows = [
        ['GET', `${tag}old`],
        ['SET', `${tag}new`, 'new'],
        ['GET', `${tag}new`],
      ];
      expect((await pipeline(rows)).body).toEqual([{ result: 'old' }, { result: 'OK' }, { result: 'new' }]);
      expect(await cluster.primaries[from]?.command('EXISTS', `${tag}old`)).toBe(1);
      const onlyNew = [
        ['INCR', `${tag}other`],
        ['INCR', `${tag}other`],
      ];
      expect((await transaction(onlyNew)).text).toBe('[{"result":1},{"result":2}]');
      const both = await run(['MGET', `${tag}old`, `${tag}new`]);
      expect(both).toMatchObject({ status: 503, body: { error: expect.stringMatching(/^TRYAGAIN/) } });
    } finally {
      await moveKeys(from, to);
      await setSlot(to);
    }
    expect(await result('MGET', `${tag}old`, `${tag}new`)).toEqual(['old', 'new']);
    await startMoving(to, from);
    await moveKeys(to, from);
    await setSlot(from);
  });
});

test('what a script answers as a redirection leads nowhere', async () => {
  let connections = 0;
  const trap = createServer(() => {
    connections += 1;
  });
  await once(trap.listen(0, '127.0.0.1'), 'listening');
  const { port } = trap.address() as AddressInfo;
  try {
    const slot = await slotOf('k');
    for (const [word, number, keys] of [
      ['MOVED', slot, ['1', 'k']],
      ['ASK', slot, ['1', 'k']],
      ['MOVED', 1, ['0']],
    ] as const) {
      const error = `${word} ${number} 127.0.0.1:${port}`;
      const script = `redis.call('PING'); return redis.error_reply('${error}')`;
      expect((await run(['EVAL', script, ...keys])).body.error).toContain(error);
    }
    expect(await result('SET', 'k', 'v')).toBe('OK');
    expect(connections).toBe(0);
  } finally {
    trap.close();
  }
});

test('ACL users are made on every primary, act in their own name, and end everywhere', async () => {
  await run(['ACL', 'SETUSER', 'ada', 'on', '>ada-password', '~key:*', '+@all', '-@dangerous']);
  const token = (await result('ACL', 'RESTTOKEN', 'ada', 'ada-password')) as string;
  expect(token).toMatch(/^acl_/);
  expect((await run(['ACL', 'RESTTOKEN', 'ada', 'wrong'])).body.error).toMatch(/^ERR Wrong password/);
  const keys = names(30);
  const set = await pipeline(
    keys.map((key) => ['SET', key, 'x']),
    token,
  );
  expect(set.body).toEqual(keys.map(() => ({ result: 'OK' })));
  expect((await run(['ACL', 'WHOAMI'], token)).body.result).toBe('ada');
  expect((await run(['GET', 'other'], token)).body.error).toMatch(/^NOPERM/);
  expect((await run(['DEL', ...keys], token)).body.result).toBe(30);
  expect(
    (
      await transaction(
        [
          ['SET', 'key:1', '1'],
          ['GET', 'key:1'],
        ],
        token,
      )
    ).status,
  ).toBe(200);
  expect(await result('ACL', 'DELUSER', 'ada')).toBe(1);
  await eventually(async () => expect((await run(['GET', 'key:1'], token)).status).toBe(401));
});

test('XREAD BLOCK waits at the primary of its stream, also among rows for others', async () => {
  for (const stream of ['stream:a', 'stream:b', 'stream:c']) {
    const waiting = pipeline([
      ['SET', 'key:1', stream],
      ['XREAD', 'BLOCK', 5_000, 'STREAMS', stream, '$'],
      ['SET', 'key:2', stream],
    ]);
    await eventually(async () => {
      const info = (await Promise.all(cluster.primaries.map((p) => p.command('INFO', 'clients')))).join();
      expect(info).toMatch(/blocked_clients:1/);
    });
    await result('XADD', stream, '*', 'field', 'value');
    const { body } = await waiting;
    expect(body).toEqual([
      { result: 'OK' },
      { result: [[stream, [[expect.any(String), ['field', 'value']]]]] },
      { result: 'OK' },
    ]);
  }
});

test("the cluster's password changes: 503 until Portico's is valid again", async () => {
  const setPassword = async (password: string) => {
    for (const primary of cluster.primaries) await primary.command('CONFIG', 'SET', 'requirepass', password);
  };
  await setPassword('another-password-0123456789');
  try {
    await eventually(async () => expect((await run(['GET', 'key'])).status).toBe(503));
    expect((await run(['GET', 'key'])).body.error).toMatch(/nothing was executed/);
  } finally {
    await setPassword(PASSWORD);
  }
  await eventually(async () => {
    for (const key of names(20)) expect((await run(['GET', key])).status).toBe(200);
  });
});

test('a slot without a primary: 503 until it has one, and readiness says so', async () => {
  const slot = await slotOf('key');
  const owner = await primaryOf('key');
  try {
    await eventually(async () => {
      // again where a node heard of its owner meanwhile: what a node no longer claims the others keep in mind
      for (const primary of cluster.primaries)
        await primary.command('CLUSTER', 'DELSLOTS', slot).catch(() => 'without an owner');
      const { status, body } = await run(['GET', 'key']);
      expect({ status, body }).toEqual({
        status: 503,
        body: { error: expect.stringMatching(/^CLUSTERDOWN /) },
      });
      expect((await transaction([['SET', 'key', '1']])).status).toBe(503);
      expect((await fetch(`${gateway.url}/readyz`)).status).toBe(503);
    });
  } finally {
    await owner.command('CLUSTER', 'ADDSLOTS', slot);
  }
  await eventually(async () => {
    expect((await run(['SET', 'key', '1'])).status).toBe(200);
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    // each node finds out by itself
    for (const primary of cluster.primaries)
      expect(String(await primary.command('CLUSTER', 'INFO'))).toContain('cluster_state:ok');
  });
});

test('a daily limit is counted in the cluster', async () => {
  const limited = await startGateway(
    { kv: { databases: [{ cluster: true, dailyRequestLimit: 5 }] } },
    { PORTICO_REDIS_URL: cluster.url },
  );
  const send = async () => {
    const headers = { authorization: `Bearer ${TOKENS.kv}` };
    return (await fetch(`${limited.url}/kv/get/x`, { headers })).status;
  };
  try {
    await eventually(async () => expect(await send()).toBe(200));
    const statuses: number[] = [];
    for (let i = 0; i < 8; i++) statuses.push(await send());
    expect(statuses).toContain(429);
    const keys = (await result('KEYS', 'portico:requests:*')) as string[];
    expect(Number(await result('GET', keys[0]))).toBeGreaterThanOrEqual(4);
  } finally {
    await limited.stop();
  }
});

test('a database that is not configured as a cluster does not tell which node has a key', async () => {
  const single = await startGateway({ kv: {} }, { PORTICO_REDIS_URL: cluster.url });
  try {
    const caller = kvCaller(`${single.url}/kv`);
    // nodes hear from each other, one after the other, that the cluster of the tests before is whole again
    await eventually(async () => expect((await caller.run('GET', 'key')).text).not.toContain('CLUSTERDOWN'));
    const texts = await Promise.all(
      names(20).flatMap((key) => [
        caller.run('GET', key).then(({ text }) => text),
        caller.pipeline(['GET', key]).then(({ text }) => text),
        caller.transaction(['GET', key]).then(({ text }) => text),
      ]),
    );
    expect(texts.join('\n')).toContain('Redis runs as a cluster');
    expect(texts.join('\n')).not.toMatch(/MOVED|127\.0\.0\.1/);
  } finally {
    await single.stop();
  }
});
