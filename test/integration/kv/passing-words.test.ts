import { Redis } from 'ioredis';
import { eventually } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { type KvRequestOptions, kvRequest } from '../../support/kv/kv.js';
import { startRedisDouble } from '../../support/kv/redis-double.js';
import { type RedisServer, startRedis } from '../../support/kv/redis-server.js';
import { stopAfterEach } from '../../support/stop-after-each.js';
import { TOKENS } from '../../support/tokens.js';

const stopLater = stopAfterEach();
const TRANSACTION = [
  ['EVAL', 'return 1', 0],
  ['GET', 'k'],
];
const inTransaction: KvRequestOptions = { path: '/kv/multi-exec' };
const readOnly: KvRequestOptions = { token: TOKENS.kvReadOnly };

async function gatewayAt(url: string): Promise<string> {
  return stopLater(await startGateway({ kv: { databases: [{ url }] } }, { PORTICO_REDIS_URL: '' })).url;
}

/** The word is over: transactions and the read-only token work, without a new connection and without a restart. */
async function expectWell(url: string): Promise<void> {
  await eventually(async () => {
    expect((await kvRequest(url, ['GET', 'k'], readOnly)).status).toBe(200);
    expect((await kvRequest(url, TRANSACTION, inTransaction)).status).toBe(200);
    expect((await kvRequest(url, [['GET', 'k']], inTransaction)).status).toBe(200);
  });
}

/** Redis' own words. */
const WORDS = [
  'LOADING Redis is loading the dataset in memory',
  'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "READONLY You can't write against a read only replica.",
  'MISCONF Errors writing to the AOF file: No space left on device',
  'NOREPLICAS Not enough good replicas to write.',
  'CLUSTERDOWN The cluster is down',
  'TRYAGAIN Multiple keys request during rehashing of slot',
];

describe.each([['PING'], ['COMMAND'], ['MULTI'], ['EXEC']])(
  'refused when a connection is made: %s',
  (name) => {
    test.each(WORDS)('%s', async (word) => {
      const redis = stopLater(await startRedisDouble());
      redis.refusals.set(name, word);
      const url = await gatewayAt(redis.url);
      await eventually(() => expect(redis.seen.filter((each) => each === name).length).toBeGreaterThan(1));
      if (name === 'COMMAND') {
        const { status, headers, body } = await kvRequest(url, ['GET', 'k'], readOnly);
        expect([status, headers.get('retry-after'), body.error]).toEqual([
          503,
          '1',
          expect.stringContaining('nothing was executed'),
        ]);
        expect((await kvRequest(url, ['GET', 'k'])).status).toBe(200);
      }
      redis.refusals.clear();
      const { length } = redis.seen;
      await expectWell(url);
      // and is not asked any more, but for what everybody is asked
      const probes = redis.seen.slice(length).filter((each) => each === 'DISCARD').length;
      expect(probes).toBeLessThanOrEqual(6);
    });
  },
);

test.each(WORDS)(
  'what the server told before holds on a new connection, whatever it says there: %s',
  async (word) => {
    const redis = stopLater(await startRedisDouble());
    const url = await gatewayAt(redis.url);
    await expectWell(url);
    redis.refusals.set('COMMAND', word);
    redis.cut();
    await eventually(async () => expect((await kvRequest(url, ['GET', 'k'], readOnly)).status).toBe(200));
  },
);

test.each(WORDS)('EXEC refused: discarded, and the next one runs: %s', async (word) => {
  const redis = stopLater(await startRedisDouble());
  const url = await gatewayAt(redis.url);
  await expectWell(url);
  redis.refusals.set('EXEC', word);
  const { status, headers, body } = await kvRequest(url, TRANSACTION, inTransaction);
  const comesAgain = !/^(OOM|READONLY)/.test(word);
  expect({ status, retry: headers.get('retry-after'), body }).toEqual({
    status: comesAgain ? 503 : 400,
    retry: comesAgain ? '1' : null,
    body: { error: expect.stringContaining(word) },
  });
  redis.refusals.clear();
  expect((await kvRequest(url, TRANSACTION, inTransaction)).status).toBe(200);
});

describe('a real script that does not end', () => {
  const ENDLESS = ['EVAL', 'while true do end', 0];

  async function busyRedis(): Promise<RedisServer> {
    const server = stopLater(await startRedis({ config: ['busy-reply-threshold 50'] }));
    await server.command('SET', 'k', 'v');
    return server;
  }

  const isBusy = (server: RedisServer) =>
    eventually(() => expect(server.command('GET', 'k')).rejects.toThrow(/^BUSY /));

  test('a gateway that was started meanwhile works as soon as the script is killed', async () => {
    const server = await busyRedis();
    const other = new Redis(server.url, { enableReadyCheck: false });
    stopLater({ stop: async () => other.disconnect() });
    other.call('EVAL', 'while true do end', 0).catch(() => undefined);
    await isBusy(server);
    const url = await gatewayAt(server.url);
    expect((await kvRequest(url, ['GET', 'k'], readOnly)).status).toBe(503);
    expect((await kvRequest(url, [['GET', 'k']], inTransaction)).status).toBe(503);
    // who comes to kill it is let through
    expect((await kvRequest(url, ['SCRIPT', 'KILL'])).body).toEqual({ result: 'OK' });
    await expectWell(url);
  });

  test('a connection that was made meanwhile takes transactions with scripts afterwards', async () => {
    const server = await busyRedis();
    const gateway = stopLater(
      await startGateway(
        { kv: { databases: [{ url: server.url, timeoutMs: 1_000 }] } },
        { PORTICO_REDIS_URL: '' },
      ),
    );
    await expectWell(gateway.url);
    // the silent connection of scripts is given up and made again while Redis is busy
    expect((await kvRequest(gateway.url, ENDLESS)).status).toBeGreaterThanOrEqual(502);
    await isBusy(server);
    // attempts to connect come every half a second
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect((await kvRequest(gateway.url, ['SCRIPT', 'KILL'])).body).toEqual({ result: 'OK' });
    await expectWell(gateway.url);
  });
});

test("a script's own error is not taken for the server's: it ran, so nobody is invited to send it again", async () => {
  const server = stopLater(await startRedis());
  const url = await gatewayAt(server.url);
  await expectWell(url);
  for (const word of ['BUSY', 'LOADING', 'MASTERDOWN', 'TRYAGAIN', 'MISCONF', 'READONLY']) {
    const script = `redis.call('INCR', 'ran') return redis.error_reply('${word} x')`;
    const { status, headers, body } = await kvRequest(url, ['EVAL', script, 0]);
    expect({ status, retry: headers.get('retry-after'), body }).toEqual({
      status: 400,
      retry: null,
      body: { error: `${word} x` },
    });
  }
  expect((await kvRequest(url, ['GET', 'ran'])).body).toEqual({ result: '6' });
});
