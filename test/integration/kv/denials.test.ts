import { createLogger, type Logger } from '../../../src/lib/logger.js';
import { eventually } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { kvRequest } from '../../support/kv/kv.js';
import type { RedisOptions } from '../../support/kv/redis-configuration.js';
import { type RedisServer, startRedis } from '../../support/kv/redis-server.js';
import { stopAfterEach } from '../../support/stop-after-each.js';
import { TOKENS } from '../../support/tokens.js';

const stopLater = stopAfterEach();
const redis = async (options: RedisOptions = {}) => stopLater(await startRedis(options));

async function gatewayWith(databases: readonly Record<string, unknown>[], log?: Logger) {
  const gateway = stopLater(await startGateway({ kv: { databases } }, { PORTICO_REDIS_URL: '' }, log));
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
  return gateway;
}

const script = (...words: string[]) => [
  'EVAL',
  `return redis.call(${words.map((w) => `'${w}'`).join(', ')})`,
  0,
];

/** Time for the password to be checked again, for which the connections log in as they did at first, in ms. */
const RECHECKED_MS = 2_500;

describe.each(['newest', 'system'] as const)('deniedCommands on the Redis that is %s', (program) => {
  test.each([undefined, 'of-the-server'])('hold within scripts, with the password %s', async (password) => {
    const server = await redis({ program, ...(password === undefined ? {} : { password }) });
    const { url } = await gatewayWith([{ url: server.url, deniedCommands: ['flushall', 'NoSuchCommand'] }]);
    expect((await kvRequest(url, ['SET', 'k', 'v'])).status).toBe(200);
    const attack = async () => {
      for (const command of [
        ['FLUSHALL'],
        script('FLUSHALL'),
        ['ACL', 'SETUSER', 'default', '+@all'],
        ['ACL', 'SETUSER', 'other', 'on', 'nopass', '+@all', '~*'],
        // hashes of passwords
        ['ACL', 'LIST'],
        ['ACL', 'GETUSER', 'default'],
      ])
        expect([command, (await kvRequest(url, command)).status]).toEqual([command, 400]);
      const multi = await kvRequest(url, [script('FLUSHALL')], { path: '/kv/multi-exec' });
      expect(multi.body).toEqual([{ error: expect.stringMatching(/can't run this command|NOPERM|ACL/i) }]);
    };
    await attack();
    await new Promise((resolve) => setTimeout(resolve, RECHECKED_MS));
    await attack();
    expect((await kvRequest(url, script('GET', 'k'))).body).toEqual({ result: 'v' });
    expect((await kvRequest(url, ['FLUSHDB'])).body).toEqual({ result: 'OK' });
  });
});

test('hold again on the connections to a Redis that was started anew, and forgot its users', async () => {
  const server = await redis({ password: 'of-the-server' });
  const { url } = await gatewayWith([{ url: server.url, deniedCommands: ['FLUSHALL'] }]);
  await server.kill();
  await server.start();
  await eventually(async () => expect((await kvRequest(url, ['SET', 'k', 'v'])).status).toBe(200));
  await eventually(async () => expect((await kvRequest(url, script('GET', 'k'))).status).toBe(200));
  expect((await kvRequest(url, script('FLUSHALL'))).status).toBe(400);
  expect((await kvRequest(url, ['GET', 'k'])).body).toEqual({ result: 'v' });
});

test('a password that is no longer valid still ends all service', async () => {
  const server = await redis({ password: 'the-first-one' });
  const { url } = await gatewayWith([{ url: server.url, deniedCommands: ['FLUSHALL'] }]);
  await server.command('CONFIG', 'SET', 'requirepass', 'another');
  await eventually(async () => expect((await kvRequest(url, ['PING'])).status).toBe(503));
});

test('grant no more than the configured user has', async () => {
  const acl = [
    'user default on >all ~* &* +@all',
    'user few on >of-few ~few:* &* +@all -del (~also:* +del +get)',
  ];
  const server = await redis({ acl });
  const { url } = await gatewayWith([
    { url: `redis://few:of-few@127.0.0.1:${server.port}`, deniedCommands: ['INCR', 'GETDEL'] },
  ]);
  expect((await kvRequest(url, ['SET', 'few:k', '1'])).status).toBe(200);
  expect((await kvRequest(url, ['SET', 'k', '1'])).status).toBe(400);
  expect((await kvRequest(url, ['DEL', 'few:k'])).status).toBe(400);
  expect((await kvRequest(url, ['DEL', 'also:k'])).status).toBe(200);
  expect((await kvRequest(url, ['EVAL', "return redis.call('INCR', KEYS[1])", 1, 'few:k'])).status).toBe(400);
});

test('where Redis does not let Portico make a user, they hold for commands, and the log says so', async () => {
  const acl = ['user default on >all ~* &* +@all', 'user plain on >of-plain ~* &* +@all -acl'];
  const server = await redis({ acl });
  const lines: string[] = [];
  const log = createLogger('info', { write: (line) => lines.push(line) });
  const { url } = await gatewayWith(
    [{ url: `redis://plain:of-plain@127.0.0.1:${server.port}`, deniedCommands: ['FLUSHALL'] }],
    log,
  );
  expect((await kvRequest(url, ['FLUSHALL'])).status).toBe(400);
  expect((await kvRequest(url, ['SET', 'k', 'v'])).status).toBe(200);
  expect(lines.filter((line) => line.includes('no boundary'))).toHaveLength(1);
});

describe('several numbered databases on one Redis', () => {
  // the environment gives the first one
  const tokenOf = (n: number) => (n === 0 ? TOKENS.kv : `token-of-database-${n}-0123456789`);

  async function pair(server: RedisServer) {
    const databases = [0, 1].map((n) => ({
      name: `db${n}`,
      path: `/kv${n}`,
      url: `${server.url}/${n}`,
      token: tokenOf(n),
    }));
    const { url } = await gatewayWith(databases);
    const run = (n: number, command: readonly unknown[]) =>
      kvRequest(url, command, { path: `/kv${n}`, token: tokenOf(n) });
    return Object.assign(run, { url });
  }

  test('none reaches the data of another', async () => {
    const server = await redis({ password: 'of-the-server' });
    const run = await pair(server);
    await run(0, ['SET', 'k', 'zero']);
    await run(1, ['SET', 'k', 'one']);
    const select = (command: string) =>
      ['EVAL', `redis.call('SELECT', '1') return redis.call(${command})`, 0] as const;
    for (const command of [
      select("'GET', 'k'"),
      ['MOVE', 'k', '1'],
      script('MOVE', 'k', '1'),
      ['COPY', 'k', 'k2', 'DB', '1'],
      script('COPY', 'k', 'k2', 'DB', '1'),
      ['SWAPDB', '0', '1'],
      script('SWAPDB', '0', '1'),
      ['FLUSHALL'],
      script('FLUSHALL'),
      ['SLOWLOG', 'GET'],
      ['CONFIG', 'SET', 'maxmemory', '1'],
      ['FUNCTION', 'FLUSH'],
    ])
      expect([command, (await run(0, command)).status]).toEqual([command, 400]);
    expect((await run(0, ['GET', 'k'])).body).toEqual({ result: 'zero' });
    expect((await run(1, ['GET', 'k'])).body).toEqual({ result: 'one' });
    expect((await run(0, ['FLUSHDB'])).body).toEqual({ result: 'OK' });
    expect((await run(1, ['GET', 'k'])).body).toEqual({ result: 'one' });
    const monitor = await fetch(`${run.url}/kv0/monitor`, {
      headers: { authorization: `Bearer ${tokenOf(0)}` },
    });
    expect(monitor.status).toBe(400);
    // Redis tells of channels without a number: they are common to all
    expect((await run(0, ['PUBLISH', 'news', 'x'])).status).toBe(200);
  });
});
