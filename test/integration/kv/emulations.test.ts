import { createHash, randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import fc from 'fast-check';
import { isFollowUp } from '../../../src/services/kv/emulations/emulation.js';
import { createEmulations, type Emulations } from '../../../src/services/kv/emulations/emulations.js';
import {
  RespDecoder,
  RespError,
  RespStatus,
  type RespValue,
} from '../../../src/services/kv/resp/resp-decoder.js';
import { type Command, encodeCommands } from '../../../src/services/kv/resp/resp-encoder.js';
import { backendAddress } from '../../support/environment.js';

/** A database of its own: SCAN sees all keys of one. */
const DATABASE = '14';
const OTHER_DATABASE = '13';

let socket: Socket;
const waiting: ((reply: RespValue) => void)[] = [];

function sendAll(commands: readonly Command[]): Promise<RespValue[]> {
  const replies = commands.map(() => new Promise<RespValue>((resolve) => waiting.push(resolve)));
  const payload = encodeCommands(commands);
  for (const piece of typeof payload === 'string' ? [payload] : payload) socket.write(piece);
  return Promise.all(replies);
}

const send = async (command: Command) => (await sendAll([command]))[0] as RespValue;

/** What a gateway does with a command: the emulation's instead of it, then what that asks for. */
async function emulate(emulations: Emulations, command: Command): Promise<RespValue> {
  const emulation = emulations.emulationOf(String(command[0]).toUpperCase(), command);
  if (emulation === undefined) return send(command);
  const answer = emulation.finish(await send(emulation.command));
  return isFollowUp(answer) ? answer.finish(await sendAll(answer.commands)) : answer;
}

/** Replies as text, errors as their text. */
function shown(reply: RespValue): unknown {
  if (Array.isArray(reply)) return reply.map(shown);
  if (reply instanceof RespError) return reply.text;
  if (reply instanceof RespStatus) return reply.bytes.toString();
  return reply?.toString() ?? null;
}

const emulations = createEmulations();
const redis = async (...command: (string | number)[]) => shown(await send(command.map(String)));
const run = async (...command: (string | number | Buffer)[]) =>
  shown(
    await emulate(
      emulations,
      command.map((part) => (part instanceof Buffer ? part : String(part))),
    ),
  );

beforeAll(async () => {
  const { hostname, port, password } = new URL(backendAddress('PORTICO_REDIS_URL'));
  socket = connect(Number(port), hostname);
  const decoder = new RespDecoder((reply) => waiting.shift()?.(reply));
  socket.on('data', (chunk) => decoder.write(chunk as Buffer));
  if (password !== '') await redis('AUTH', decodeURIComponent(password));
  expect(await redis('SELECT', DATABASE)).toBe('OK');
});

beforeEach(async () => {
  expect(await redis('FLUSHDB')).toBe('OK');
});

afterAll(async () => {
  await redis('FLUSHDB');
  socket.destroy();
});

describe('SCAN', () => {
  const keys = Array.from({ length: 950 }, (_, i) => `key:${i}`);
  const fill = async () => {
    expect(await redis('MSET', ...keys.flatMap((key) => [key, 'v']))).toBe('OK');
  };

  test('a keyspace of fewer than 1,000 keys comes in one page', async () => {
    await fill();
    const [cursor, found] = (await run('SCAN', 0)) as [string, string[]];
    expect(cursor).toBe('0');
    expect(found.toSorted()).toEqual(keys.toSorted());
    const [more] = (await run('SCAN', 0, 'COUNT', 10)) as [string, string[]];
    expect(more).not.toBe('0');
  });

  test('WITHTYPE tells every type, for any bytes of a key', async () => {
    await send(['SET', Buffer.from([0xff, 0, 13, 10]), 'v']);
    await redis('HSET', 'hash', 'f', 'v');
    await redis('XADD', 'stream', '*', 'f', 'v');
    await redis('ZADD', 'withtype', 1, 'm');
    const [cursor, flat] = (await emulate(emulations, ['scan', '0', 'withtype'])) as [Buffer, Buffer[]];
    expect(cursor.toString()).toBe('0');
    const pairs = Array.from({ length: flat.length / 2 }, (_, i) =>
      [flat[2 * i]?.toString('latin1'), flat[2 * i + 1]?.toString()].join('='),
    );
    expect(pairs.toSorted()).toEqual(
      ['hash=hash', 'stream=stream', 'withtype=zset', '\xff\0\r\n=string'].toSorted(),
    );
  });

  test('WITHTYPE walks a keyspace page by page, and stands beside the other options', async () => {
    await fill();
    await redis('SADD', 'key:set', 'm');
    const found = new Map<string, string>();
    let cursor = '0';
    let pages = 0;
    do {
      const [next, flat] = (await run('SCAN', cursor, 'WITHTYPE', 'COUNT', 100, 'MATCH', 'key:*')) as [
        string,
        string[],
      ];
      for (let i = 0; i < flat.length; i += 2) found.set(flat[i] as string, flat[i + 1] as string);
      cursor = next;
      pages++;
    } while (cursor !== '0');
    expect(pages).toBeGreaterThan(5);
    expect(found).toEqual(new Map([...keys.map((key) => [key, 'string'] as const), ['key:set', 'set']]));
    expect(await run('SCAN', 0, 'TYPE', 'set', 'withtype')).toEqual(['0', ['key:set', 'set']]);
    expect(await run('SCAN', 0, 'MATCH', 'withtype')).toEqual(['0', []]);
    expect(await run('SCAN', 0, 'MATCH', 'nothing', 'WITHTYPE')).toEqual(['0', []]);
  });

  test('a key that is gone before its type is asked for is left out', async () => {
    await redis('MSET', 'a', 1, 'b', 2);
    const emulation = emulations.emulationOf('SCAN', ['SCAN', '0', 'WITHTYPE']);
    const answer = emulation?.finish(await send(emulation.command)) ?? null;
    if (!isFollowUp(answer)) throw new Error('no types were asked for');
    await redis('DEL', 'a');
    expect(shown(answer.finish(await sendAll(answer.commands)))).toEqual(['0', ['b', 'string']]);
  });

  test("errors are Redis' own", async () => {
    expect(await run('SCAN', 'x', 'WITHTYPE')).toBe('ERR invalid cursor');
    expect(await run('SCAN', 0, 'WITHTYPE', 'COUNT', 'x')).toBe(
      'ERR value is not an integer or out of range',
    );
    expect(await run('SCAN', 0, 'WITHTYPE', 'COUNT', 0)).toBe('ERR syntax error');
    expect(await run('SCAN', 0, 'WITHTYPE', 'MATCH')).toBe('ERR syntax error');
    expect(await run('SCAN')).toMatch(/^ERR wrong number of arguments/);
  });
});

test('COPY of a key to itself answers 0; other databases, other keys and mistakes are as ever', async () => {
  expect(await run('COPY', 'k', 'k')).toBe('0');
  await redis('SET', 'k', 'v');
  expect(await run('COPY', 'k', 'k')).toBe('0');
  expect(await run('COPY', 'k', 'k', 'REPLACE')).toBe('0');
  expect(await run('COPY', 'k', 'k', 'DB', DATABASE)).toBe('0');
  expect(await run('COPY', 'k', 'l')).toBe('1');
  expect(await run('COPY', 'k', 'l')).toBe('0');
  expect(await run('COPY', 'k', 'k', 'DB', '99')).toBe('ERR DB index is out of range');
  expect(await run('COPY', 'k', 'k', 'NOPE')).toBe('ERR syntax error');
  const other = `emulations-test:${randomBytes(6).toString('hex')}`;
  await redis('SET', other, 'v', 'EX', 60);
  expect(await run('COPY', other, other, 'DB', OTHER_DATABASE)).toBe('1');
  await redis('SELECT', OTHER_DATABASE);
  expect(await redis('DEL', other)).toBe('1');
  await redis('SELECT', DATABASE);
});

describe('ZRANGE with LIMIT by index', () => {
  test('answers what LIMIT leaves of the range, for any numbers', async () => {
    for (let size = 0; size <= 12; size++) {
      for (let i = 0; i < size; i++) await redis('ZADD', `z${size}`, i, `m${i}`);
    }
    const number = fc.integer({ min: -14, max: 14 });
    const limit = fc.integer({ min: -2, max: 14 });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 12 }),
        number,
        number,
        limit,
        limit,
        fc.subarray(['REV', 'WITHSCORES']),
        async (size, start, stop, offset, count, options) => {
          const whole = (await redis('ZRANGE', `z${size}`, start, stop, ...options)) as string[];
          const width = options.includes('WITHSCORES') ? 2 : 1;
          const end = count < 0 ? undefined : (offset + count) * width;
          const limited = offset < 0 ? [] : whole.slice(offset * width, end);
          expect(await run('ZRANGE', `z${size}`, start, stop, 'LIMIT', offset, count, ...options)).toEqual(
            limited,
          );
        },
      ),
      { numRuns: 500 },
    );
  });

  test('of a large set asks for no more than is wanted', async () => {
    for (let i = 0; i < 20; i++)
      await redis(
        'ZADD',
        'z',
        ...Array.from({ length: 1_000 }, (_, j) => [i * 1_000 + j, `m${i * 1_000 + j}`]).flat(),
      );
    const emulation = emulations.emulationOf('ZRANGE', 'ZRANGE z 0 -1 REV LIMIT 10000 3'.split(' '));
    expect(shown(await send(emulation?.command ?? []))).toEqual(['m9999', 'm9998', 'm9997']);
    const { length } = (await send(
      emulations.emulationOf('ZRANGE', 'ZRANGE z 5 -8 LIMIT 9 3'.split(' '))?.command ?? [],
    )) as RespValue[];
    expect(length).toBe(10);
  });

  test("errors are Redis' own, and LIMIT by score stays as it was", async () => {
    await redis('SET', 'text', 'v');
    await redis('ZADD', 'z', 1, 'a', 2, 'b', 3, 'c');
    expect(await run('ZRANGE', 'text', 0, -1, 'LIMIT', 0, 2)).toMatch(/^WRONGTYPE/);
    expect(await run('ZRANGE', 'text', 0, -1, 'LIMIT', -1, 2)).toMatch(/^WRONGTYPE/);
    expect(await run('ZRANGE', 'text', 0, -1, 'LIMIT', 0, 0)).toMatch(/^WRONGTYPE/);
    const noInteger = 'ERR value is not an integer or out of range';
    expect(await run('ZRANGE', 'z', 'a', -1, 'LIMIT', 0, 2)).toBe(noInteger);
    expect(await run('ZRANGE', 'z', 0, '1.5', 'LIMIT', 0, 2)).toBe(noInteger);
    expect(await run('ZRANGE', 'z', 0, -1, 'LIMIT', 0, 'x')).toBe(noInteger);
    expect(await run('ZRANGE', 'z', 0, -1, 'LIMIT', 0)).toBe('ERR syntax error');
    expect(await run('ZRANGE', 'z', 0, -1, 'LIMIT', 0, 2, 'NOPE')).toBe('ERR syntax error');
    expect(await run('ZRANGE', 'z', 0, 9, 'BYSCORE', 'LIMIT', 1, 1)).toEqual(['b']);
    expect(await run('ZRANGE', 'z', 0, '9223372036854775807', 'LIMIT', 1, '9223372036854775807')).toEqual([
      'b',
      'c',
    ]);
    expect(await run('ZRANGE', 'z', '-9223372036854775808', -1, 'LIMIT', 1, 1)).toEqual(['b']);
  });
});

describe('XTRIM with ~', () => {
  const fill = async (length: number, key = 's') => {
    await sendAll(Array.from({ length }, (_, i) => ['XADD', key, `${i + 1}-0`, 'f', `${i}`]));
  };

  test('leaves as many as were named, of a long stream too', async () => {
    await fill(12_000);
    expect(await run('XTRIM', 's', 'MAXLEN', '~', 50)).toBe('11950');
    expect(await redis('XLEN', 's')).toBe('50');
    await fill(400, 's2');
    expect(await run('XTRIM', 's2', 'minid', '~', '350-0')).toBe('349');
  });

  test('leaves a short stream whole, as Redis and the hosted product do', async () => {
    await fill(50);
    expect(await run('XTRIM', 's', 'MAXLEN', '~', 30)).toBe('0');
    expect(await redis('XLEN', 's')).toBe('50');
  });

  test('and LIMIT does as little as it is told', async () => {
    await fill(1_000);
    expect(Number(await run('XTRIM', 's', 'MAXLEN', '~', 50, 'LIMIT', 200))).toBeLessThanOrEqual(200);
    expect(await run('XTRIM', 's', 'MAXLEN', '~', 'x')).toBe('ERR value is not an integer or out of range');
    expect(await run('XTRIM', 's', 'MAXLEN', '~')).toMatch(/^ERR/);
  });
});

describe('scripts with allow-key-locking', () => {
  const sha1 = (script: string) => createHash('sha1').update(script).digest('hex');
  /** A text that no run of the test has given to Redis before. */
  const fresh = (line: string, body: string) => `${line}\n-- ${randomBytes(6).toString('hex')}\n${body}`;
  const locking = () => fresh('#!lua flags=allow-key-locking', 'return {KEYS[1], ARGV[1], "é"}');

  test.each([
    '#!lua flags=allow-key-locking',
    '#!lua flags=no-writes,allow-key-locking',
    '#!lua flags=allow-key-locking,no-writes,allow-oom',
    '#!lua flags=no-writes flags=allow-key-locking',
    '#!lua\tflags="allow-key-locking,no-writes" ',
    `#!lua 'flags=allow-key-locking'`,
    '#!lua flags=allow-key-locking\r',
  ])('run: %j', async (line) => {
    const script = fresh(line, 'return ARGV[1]');
    // so that the test would notice when Redis learns the flag
    expect(await redis('EVAL', script, 0, 'a')).toMatch(/^ERR Unexpected flag/);
    expect(await run('EVAL', script, 0, 'a')).toBe('a');
    expect(await run('EVAL_RO', Buffer.from(script), 0, 'a')).toBe('a');
  });

  test('keep their other flags and their line numbers', async () => {
    const script = fresh('#!lua flags=allow-key-locking,no-writes', 'redis.call("SET", KEYS[1], "v")');
    expect(await run('EVAL', script, 1, 'k')).toMatch(
      /^ERR Write commands are not allowed from read-only scripts/,
    );
    expect(await run('EVAL_RO', fresh('#!lua flags=allow-oom,allow-key-locking', 'return 1'), 0)).toMatch(
      /^ERR Can not execute a script with write flag/,
    );
    expect(await run('EVAL', fresh('#!lua flags=allow-key-locking', 'error("no")'), 0)).toMatch(
      /user_script:3: no/,
    );
    expect(await run('EVAL', fresh('#!lua flags=allow-key-locking,nope', 'return 1'), 0)).toBe(
      'ERR Unexpected flag in script shebang: nope',
    );
  });

  test('EVALSHA, NOSCRIPT, EVAL, EVALSHA: the way that clients go', async () => {
    const script = locking();
    expect(await run('EVALSHA', sha1(script), 1, 'k', 'v')).toMatch(/^NOSCRIPT/);
    expect(await run('EVAL', script, 1, 'k', 'v')).toEqual(['k', 'v', 'é']);
    expect(await run('EVALSHA', sha1(script), 1, 'k', 'v')).toEqual(['k', 'v', 'é']);
    expect(await run('EVALSHA_RO', sha1(script).toUpperCase(), 1, 'k', 'v')).toEqual(['k', 'v', 'é']);
  });

  test('SCRIPT LOAD answers the digest of the text, which EVALSHA and SCRIPT EXISTS take', async () => {
    const script = locking();
    const plain = fresh('-- plain', 'return 1');
    expect(await run('SCRIPT', 'LOAD', plain)).toBe(sha1(plain));
    expect(await run('SCRIPT', 'EXISTS', sha1(script))).toEqual(['0']);
    expect(await run('SCRIPT', 'LOAD', script)).toBe(sha1(script));
    expect(await run('SCRIPT', 'EXISTS', 'x', sha1(script), sha1(plain))).toEqual(['0', '1', '1']);
    expect(await run('EVALSHA', sha1(script), 1, 'k', 'v')).toEqual(['k', 'v', 'é']);
    expect(await run('SCRIPT', 'LOAD', fresh('#!lua flags=allow-key-locking', 'return ('))).toMatch(
      /^ERR Error compiling/,
    );
  });

  test('another gateway says NOSCRIPT until it has seen the text', async () => {
    const script = locking();
    await run('SCRIPT', 'LOAD', script);
    const other = createEmulations();
    const there = async (...command: string[]) => shown(await emulate(other, command));
    expect(await there('EVALSHA', sha1(script), '1', 'k', 'v')).toMatch(/^NOSCRIPT/);
    expect(await there('EVAL', script, '1', 'k', 'v')).toEqual(['k', 'v', 'é']);
    expect(await there('EVALSHA', sha1(script), '1', 'k', 'v')).toEqual(['k', 'v', 'é']);
  });

  test('after SCRIPT FLUSH a known digest gets NOSCRIPT, and EVAL brings it back', async () => {
    const script = locking();
    await run('EVAL', script, 1, 'k', 'v');
    expect(await run('SCRIPT', 'FLUSH')).toBe('OK');
    expect(await run('EVALSHA', sha1(script), 1, 'k', 'v')).toMatch(/^NOSCRIPT/);
    expect(await run('SCRIPT', 'EXISTS', sha1(script))).toEqual(['0']);
    await run('EVAL', script, 1, 'k', 'v');
    expect(await run('EVALSHA', sha1(script), 1, 'k', 'v')).toEqual(['k', 'v', 'é']);
  });
});

test('rows of a transaction: the items of EXEC are finished like single replies', async () => {
  await redis('ZADD', 'z', 1, 'a', 2, 'b', 3, 'c');
  const rows: Command[] = [
    ['ZRANGE', 'z', '0', '-2', 'LIMIT', '1', '5'],
    ['COPY', 'z', 'z'],
    ['SCAN', '0', 'WITHTYPE'],
  ];
  const emulated = rows.map((row) => emulations.emulationOf(String(row[0]), row));
  const replies = await sendAll([['MULTI'], ...emulated.map((row) => row?.command ?? []), ['EXEC']]);
  const answers = (replies.at(-1) as RespValue[]).map((item, i) => emulated[i]?.finish(item) ?? null);
  const finished = await Promise.all(
    answers.map(async (answer) =>
      shown(isFollowUp(answer) ? answer.finish(await sendAll(answer.commands)) : answer),
    ),
  );
  expect(finished).toEqual([['b'], '0', ['0', ['z', 'zset']]]);
});
