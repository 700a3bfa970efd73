import { randomBytes } from 'node:crypto';
import { eventually } from '../../support/eventually.js';
import type { RunningGateway } from '../../support/gateway.js';
import { startKvGateway } from '../../support/kv/kv-redis.js';
import type { RedisProgram } from '../../support/kv/redis-configuration.js';
import { TOKENS } from '../../support/tokens.js';

const PREFIX = `kv-hash:${randomBytes(4).toString('hex')}:`;
const { PORTICO_TEST_REDIS_NEWEST: newest, PORTICO_TEST_REDIS_SYSTEM: system } = process.env;

/** `complete`: it must know the commands, since a newer Redis than the system's could be fetched. */
const servers: { name: string; program: RedisProgram | undefined; complete: boolean }[] = [
  { name: "this run's Redis", program: undefined, complete: newest !== system },
  { name: "the system's Redis", program: 'system', complete: false },
];

/** The commands that came after Redis 7.0, as a client would call them, on a hash with the fields a and b. */
const examples: readonly [string, (hash: string) => unknown[], unknown][] = [
  ['HEXPIRE', (hash) => ['HEXPIRE', hash, 100, 'FIELDS', 2, 'a', 'none'], [1, -2]],
  ['HPEXPIRE', (hash) => ['HPEXPIRE', hash, 100_000, 'NX', 'FIELDS', 1, 'a'], [1]],
  ['HTTL', (hash) => ['HTTL', hash, 'FIELDS', 2, 'a', 'none'], [-1, -2]],
  ['HPTTL', (hash) => ['HPTTL', hash, 'FIELDS', 1, 'a'], [-1]],
  ['HEXPIREAT', (hash) => ['HEXPIREAT', hash, 9_999_999_999, 'FIELDS', 1, 'a'], [1]],
  ['HEXPIRETIME', (hash) => ['HEXPIRETIME', hash, 'FIELDS', 1, 'a'], [-1]],
  ['HPERSIST', (hash) => ['HPERSIST', hash, 'FIELDS', 1, 'a'], [-1]],
  ['HGETEX', (hash) => ['HGETEX', hash, 'EX', 100, 'FIELDS', 2, 'a', 'none'], ['1', null]],
  ['HSETEX', (hash) => ['HSETEX', hash, 'EX', 100, 'FIELDS', 2, 'a', 3, 'c', 4], 1],
  ['HGETDEL', (hash) => ['HGETDEL', hash, 'FIELDS', 2, 'a', 'none'], ['1', null]],
];

describe.each(servers)('hash fields that expire, on $name', ({ program, complete }) => {
  let gateway: RunningGateway;

  async function send(path: string, body?: string | Uint8Array, token: string = TOKENS.kv) {
    const response = await fetch(`${gateway.url}/kv${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, body: (await response.json()) as unknown };
  }

  const run = (...command: unknown[]) => send('', JSON.stringify(command));
  const asPath = (command: unknown[]) =>
    `/${command.map((part) => encodeURIComponent(String(part))).join('/')}`;
  const isKnown = async (name: string) => {
    const { body } = await run('COMMAND', 'INFO', name);
    return (body as { result: unknown[] }).result[0] !== null;
  };

  async function freshHash(name: string): Promise<string> {
    const hash = `${PREFIX}${name}`;
    await run('DEL', hash);
    await run('HSET', hash, 'a', 1, 'b', 2);
    return hash;
  }

  beforeAll(async () => {
    gateway = await startKvGateway(program);
    if (complete) for (const [name] of examples) expect([name, await isKnown(name)]).toEqual([name, true]);
  });

  afterAll(async () => {
    const { body } = await run('KEYS', `${PREFIX}*`);
    await run('DEL', 'none', ...(body as { result: string[] }).result);
    await gateway.stop();
  });

  test.each(examples)(
    "%s in every form, or Redis' own error where it is unknown",
    async (name, build, expected) => {
      const known = await isKnown(name);
      const answer = known
        ? { status: 200, body: { result: expected } }
        : {
            status: 400,
            body: { error: expect.stringMatching(new RegExp(`^ERR unknown command '${name}'`, 'i')) },
          };
      const hash = await freshHash(name);
      expect(await run(...build(hash))).toEqual(answer);
      await freshHash(name);
      expect(await send(asPath(build(hash)))).toEqual(answer);
      await freshHash(name);
      const command = build(hash);
      // the last argument as the body of the request
      expect(await send(asPath(command.slice(0, -1)), String(command.at(-1)))).toEqual(answer);
      await freshHash(name);
      const rows = JSON.stringify([build(hash), ['HGET', hash, 'b']]);
      expect((await send('/pipeline', rows)).body).toEqual([answer.body, { result: '2' }]);
      await freshHash(name);
      const ran = { status: 200, body: [answer.body, { result: '2' }] };
      expect(await send('/multi-exec', rows)).toEqual(known ? ran : answer);
    },
  );

  test('a field goes when its time is over, the others stay', async () => {
    const known = await isKnown('HPEXPIRE');
    const hash = await freshHash('over');
    const { status } = await run('HPEXPIRE', hash, 30, 'FIELDS', 1, 'a');
    expect(status).toBe(known ? 200 : 400);
    const left = known ? ['b', '2'] : ['a', '1', 'b', '2'];
    await eventually(async () => expect((await run('HGETALL', hash)).body).toEqual({ result: left }));
  });

  test('query parameters follow the path, names without value too', async () => {
    const known = await isKnown('HGETEX');
    const hash = await freshHash('query');
    const { status, body } = await send(`/hgetex/${hash}?EX=100&FIELDS=2&a&b`);
    expect(status).toBe(known ? 200 : 400);
    expect(body).toEqual(known ? { result: ['1', '2'] } : { error: expect.stringMatching(/^ERR unknown/) });
  });

  test('the read-only token reads times and sets none', async () => {
    const hash = await freshHash('read-only');
    const refused = { status: 400, body: { error: expect.stringMatching(/^NOPERM /) } };
    const read = (command: unknown[]) => send('', JSON.stringify(command), TOKENS.kvReadOnly);
    for (const [name, build] of examples) {
      const reads = /^H(P?TTL|P?EXPIRETIME)$/.test(name) && (await isKnown(name));
      const answer = await read(build(hash));
      if (reads) expect([name, answer.status]).toEqual([name, 200]);
      else expect([name, answer]).toEqual([name, refused]);
    }
  });
});
