import fc from 'fast-check';
import {
  type Emulation,
  type FollowUp,
  isFollowUp,
} from '../../../../src/services/kv/emulations/emulation.js';
import { createEmulations } from '../../../../src/services/kv/emulations/emulations.js';
import { RespError, RespStatus, type RespValue } from '../../../../src/services/kv/resp/resp-decoder.js';
import type { Command } from '../../../../src/services/kv/resp/resp-encoder.js';
import { anyCharacter } from '../../../support/any-character.js';

const emulations = createEmulations();

const WORDS =
  `MATCH COUNT TYPE WITHTYPE LIMIT BYSCORE BYLEX REV WITHSCORES MAXLEN MINID ~ = LOAD EXISTS DB REPLACE 0 -1 10
  9223372036854775807 -9223372036854775808 99999999999999999999`.split(/\s+/);
const SCRIPTS = ['return 1', '#!lua flags=allow-key-locking\nreturn 1', '#!lua\n', '#!', '#!lua flags=\n'];

const text = fc.oneof(
  fc.constantFrom(...WORDS, ...SCRIPTS),
  fc.constantFrom(...WORDS).map((word) => word.toLowerCase()),
  fc.string({ unit: anyCharacter, maxLength: 50 }),
);
const argument = fc.oneof(
  text,
  text.map((value) => Buffer.from(value)),
  fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
);
const reply: fc.Arbitrary<RespValue> = fc.letrec<{ value: RespValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constant(null),
    fc.constantFrom('0', '1', '-1'),
    fc.string().map((value) => new RespError(`ERR ${value}`)),
    fc.uint8Array({ maxLength: 10 }).map((bytes) => Buffer.from(bytes)),
    fc.array(tie('value'), { maxLength: 4 }),
  ),
})).value;

test('whatever is sent and answered: a command of arguments, an answer, and nothing thrown', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...emulations.names),
      fc.array(argument, { maxLength: 9 }),
      reply,
      fc.array(reply, { maxLength: 4 }),
      (name, parts, first, further) => {
        const command = [name, ...parts];
        const before = command.map((part) => (typeof part === 'string' ? part : Buffer.from(part)));
        const emulation = emulations.emulationOf(name, command);
        expect(command).toEqual(before);
        if (emulation === undefined) return;
        expect(emulation.command[0]).toBe(name);
        for (const part of emulation.command)
          expect(typeof part === 'string' || part instanceof Buffer).toBe(true);
        const answer = emulation.finish(first);
        expect(answer).not.toBeUndefined();
        if (isFollowUp(answer)) {
          expect(answer.commands.length).toBeGreaterThan(0);
          expect(answer.finish(further)).not.toBeUndefined();
        }
      },
    ),
    {
      numRuns: 2_000,
      // a page that names no key asks for no type
      examples: [['SCAN', ['0', 'WITHTYPE'], ['0', [null]], []]],
    },
  );
});

test.each([
  [['GET', 'k']],
  [['SCAN']],
  [['SCAN', '0', 'COUNT', '5']],
  [['SCAN', '0', 'MATCH', 'withtype', 'COUNT', '5']],
  [['SCAN', '0', 'COUNT', '5', 'TYPE', 'withtype']],
  [['SCAN', '0', 'WITHTYPE', 'MATCH']],
  [['SCAN', '0', 'WITHTYPE', 'NEWOPTION', 'x']],
  [['HSCAN', 'h', '0', 'WITHTYPE']],
  [['ZRANGE', 'z', '0', '-1']],
  [['ZRANGE', 'LIMIT', '0', '-1', 'WITHSCORES']],
  [['ZRANGE', 'z', '0', '9', 'BYSCORE', 'LIMIT', '0', '2']],
  [['ZRANGE', 'z', '-', '+', 'LIMIT', '0', '2', 'bylex']],
  [['ZRANGE', 'z', '0', '-1', 'LIMIT', '0']],
  [['ZRANGE', 'z', '0', '-1', 'LIMIT', '0', 'x']],
  [['ZRANGE', 'z', '0', '-1', 'LIMIT', '01', '2']],
  [['ZRANGE', 'z', '0', '-1', 'LIMIT', '0', '9223372036854775808']],
  [['ZRANGE', 'z', '0', '-1', 'LIMIT', '0', '2', 'NOPE']],
  [['ZRANGESTORE', 'd', 'z', '0', '-1', 'LIMIT', '0', '2']],
  [['XTRIM', 's', 'MAXLEN', '10']],
  [['XTRIM', 's', 'MAXLEN', '=', '10']],
  [['XTRIM', 's', 'MAXLEN', '~', '10', 'LIMIT', '5']],
  [['XADD', 's', 'MAXLEN', '~', '10', '*', 'f', 'v']],
  [['EVAL', 'return 1', '0']],
  [['EVAL', '#!lua flags=no-writes\nreturn 1', '0']],
  [['EVAL', '-- flags=allow-key-locking\nreturn 1', '0']],
  [['EVALSHA', 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db', '0']],
  [['SCRIPT', 'EXISTS', 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db']],
  [['SCRIPT', 'FLUSH']],
])('%j goes to Redis as it is', (command) => {
  expect(createEmulations().emulationOf(command[0] as string, command)).toBeUndefined();
});

/** What is sent, as text. */
const sent = (...command: (string | Buffer)[]) =>
  emulations.emulationOf(String(command[0]).toUpperCase(), command)?.command.map(String);

test('SCAN: WITHTYPE is taken out, and a COUNT put in where there is none', () => {
  expect(sent('scan', '0')).toEqual(['scan', '0', 'COUNT', '1000']);
  expect(sent('SCAN', '0', 'MATCH', 'withtype')).toEqual(['SCAN', '0', 'MATCH', 'withtype', 'COUNT', '1000']);
  expect(sent('SCAN', '0', 'withType', 'count', '7', Buffer.from('WITHTYPE'))).toEqual([
    'SCAN',
    '0',
    'count',
    '7',
  ]);
  expect(sent('SCAN', '0', 'WITHTYPE', 'TYPE', 'withtype', 'MATCH', 'count')).toEqual([
    'SCAN',
    '0',
    'TYPE',
    'withtype',
    'MATCH',
    'count',
    'COUNT',
    '1000',
  ]);
});

test('SCAN WITHTYPE: a huge COUNT is lowered, a wrong one stays for Redis to refuse', () => {
  expect(sent('SCAN', '0', 'COUNT', '9000000', 'WITHTYPE')).toEqual(['SCAN', '0', 'COUNT', '10000']);
  expect(sent('SCAN', '0', 'COUNT', 'many', 'WITHTYPE')).toEqual(['SCAN', '0', 'COUNT', 'many']);
  expect(sent('SCAN', '0', 'COUNT', '0', 'WITHTYPE')).toEqual(['SCAN', '0', 'COUNT', '0']);
});

describe('SCAN WITHTYPE: the answer', () => {
  const { finish } = emulations.emulationOf('SCAN', ['SCAN', '0', 'WITHTYPE']) as Emulation;
  const page = (...keys: string[]) => [Buffer.from('7'), keys.map((key) => Buffer.from(key))];
  const answerOf = (types: RespValue[], ...keys: string[]) => {
    const answer = finish(page(...keys));
    if (!isFollowUp(answer)) throw new Error('no types were asked for');
    expect(answer.commands).toEqual(keys.map((key) => ['TYPE', Buffer.from(key)]));
    return answer.finish(types);
  };

  const status = (word: string) => new RespStatus(Buffer.from(word));

  test('pairs keys with their types', () => {
    expect(answerOf([status('string'), status('hash')], 'a', 'b')).toEqual([
      Buffer.from('7'),
      ['a', 'string', 'b', 'hash'].map((word) => Buffer.from(word)),
    ]);
  });

  test('leaves out a key that vanished, and keeps one that is called none', () => {
    expect(answerOf([status('none'), status('set'), status('none')], 'a', 'none', 'b')).toEqual([
      Buffer.from('7'),
      ['none', 'set'].map((word) => Buffer.from(word)),
    ]);
  });

  test('is the error when a type cannot be told', () => {
    const error = new RespError('NOPERM no');
    expect(answerOf([status('set'), error], 'a', 'b')).toBe(error);
  });

  test('needs no types for an empty page or an error', () => {
    expect(finish(page())).toEqual(page());
    const error = new RespError('ERR invalid cursor');
    expect(finish(error)).toBe(error);
  });
});

test('ZRANGE with LIMIT asks Redis for little more than is wanted', () => {
  const range = (...rest: string[]) => sent('ZRANGE', 'z', ...rest)?.slice(2);
  expect(range('0', '-1', 'LIMIT', '5', '10')).toEqual(['5', '14']);
  expect(range('0', '-1', 'REV', 'LIMIT', '5', '10', 'WITHSCORES')).toEqual(['5', '14', 'REV', 'WITHSCORES']);
  expect(range('10', '20', 'limit', '5', '10')).toEqual(['15', '20']);
  expect(range('10', '20', 'LIMIT', '1', '3')).toEqual(['11', '13']);
  expect(range('10', '-3', 'LIMIT', '1', '3')).toEqual(['11', '15']);
  expect(range('10', '-3', 'LIMIT', '1', '-1')).toEqual(['11', '-3']);
  expect(range('-10', '-3', 'LIMIT', '1', '3')).toEqual(['-10', '-3']);
  expect(range('0', '-1', 'LIMIT', '0', '9223372036854775807')).toEqual(['0', String(2 ** 50 - 1)]);
  expect(range('0', '-1', 'LIMIT', '-1', '3')).toEqual(['1', '0']);
  expect(range('0', '-1', 'LIMIT', '1', '0')).toEqual(['1', '0']);
  expect(range('0', '-1', 'LIMIT', '1', '2', 'LIMIT', '3', '4')).toEqual(['3', '6']);
  // Redis then says which of them is no integer
  expect(range('a', '-1', 'LIMIT', '1', '2')).toEqual(['a', '-1']);
});

test('ZRANGE with LIMIT answers what LIMIT leaves of the same range', () => {
  const index = fc.integer({ min: -14, max: 14 });
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 12 }),
      index,
      index,
      fc.integer({ min: -2, max: 14 }),
      fc.integer({ min: -2, max: 14 }),
      fc.boolean(),
      (size, start, stop, offset, count, withScores) => {
        const members = Array.from({ length: size }, (_, i) => [Buffer.from(`m${i}`), Buffer.from(`${i}`)]);
        const zrange = (from: number, to: number) =>
          members.slice(
            from < 0 ? Math.max(0, size + from) : from,
            Math.max(0, (to < 0 ? size + to : to) + 1),
          );
        const { command, finish } = emulations.emulationOf(
          'ZRANGE',
          ['ZRANGE', 'z', start, stop, 'LIMIT', offset, count, ...(withScores ? ['WITHSCORES'] : [])].map(
            String,
          ),
        ) as Emulation;
        const flat = (pairs: Buffer[][]) => pairs.flatMap((pair) => (withScores ? pair : pair.slice(0, 1)));
        const limited =
          offset < 0 ? [] : zrange(start, stop).slice(offset, count < 0 ? undefined : offset + count);
        expect(finish(flat(zrange(Number(command[2]), Number(command[3]))))).toEqual(flat(limited));
      },
    ),
    { numRuns: 2_000 },
  );
});

test('COPY of a key to itself is 0, other errors stay', () => {
  const { command, finish } = emulations.emulationOf('COPY', ['COPY', 'k', 'k', 'DB', '0']) as Emulation;
  expect(command).toEqual(['COPY', 'k', 'k', 'DB', '0']);
  expect(finish(new RespError('ERR source and destination objects are the same'))).toBe('0');
  const error = new RespError('ERR syntax error');
  expect(finish(error)).toBe(error);
  expect(finish('1')).toBe('1');
});

test('XTRIM with ~ trims exactly once it has removed something', () => {
  const approximate = ['XTRIM', 's', 'MINID', Buffer.from('~'), '1-1', 'KEEPREF'];
  expect(sent(...approximate)).toEqual(approximate.map(String));
  const { finish } = emulations.emulationOf('XTRIM', approximate) as Emulation;
  expect(finish('0')).toBe('0');
  const error = new RespError('ERR no');
  expect(finish(error)).toBe(error);
  const further = finish('100') as FollowUp;
  expect(further.commands).toEqual([['XTRIM', 's', 'MINID', '=', '1-1', 'KEEPREF']]);
  expect(further.otherwise).toBe('100');
  expect(further.finish(['7'])).toBe('107');
  expect(further.finish([error])).toBe('100');
});

test('commands as rows of a transaction are told apart from QUEUED', () => {
  const answers: Command[] = [
    ['SCRIPT', 'LOAD', '#!lua flags=allow-key-locking\nreturn 1'],
    ['ZRANGE', 'z', '0', '-1', 'LIMIT', '1', '1'],
    ['SCAN', '0', 'WITHTYPE'],
  ];
  for (const command of answers) {
    const queued = Buffer.from('QUEUED');
    expect(emulations.emulationOf(String(command[0]), command)?.finish(queued)).toBe(queued);
  }
});
