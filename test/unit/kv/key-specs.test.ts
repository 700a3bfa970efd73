import { firstKeyAt, keysAt, readKeySpecs } from '../../../src/services/kv/commands/key-specs.js';
import type { RespValue } from '../../../src/services/kv/resp/resp-decoder.js';

/** An entry of COMMAND as servers before 7.0 give it. */
const entry = (first: number, last: number, step: number): RespValue[] => [
  null,
  '2',
  [],
  String(first),
  String(last),
  String(step),
  [],
];

test.each([
  ['get', [1, 1, 1], 'GET k', ['k']],
  ['mset', [1, -1, 2], 'MSET a 1 b 2', ['a', 'b']],
  ['object', [2, 2, 1], 'OBJECT ENCODING k', ['k']],
  ['bitop', [2, -1, 1], 'BITOP AND d a b', ['d', 'a', 'b']],
  ['eval', [0, 0, 0], 'EVAL script 2 a b c', ['a', 'b']],
  ['eval', [0, 0, 0], 'EVAL script 0 c', []],
  ['xread', [0, 0, 0], 'XREAD COUNT 1 STREAMS a b 0 0', ['a', 'b']],
  ['xreadgroup', [0, 0, 0], 'XREADGROUP GROUP g STREAMS STREAMS s >', ['s']],
  ['zunion', [0, 0, 0], 'ZUNION 2 a b WITHSCORES', ['a', 'b']],
  ['ping', [0, 0, 0], 'PING k', []],
] as const)('%s of a server that tells no specifications', (name, [first, last, step], line, keys) => {
  const specs = readKeySpecs(name, entry(first, last, step));
  const command = line.split(' ');
  expect(keysAt(specs, command).map((i) => command[i])).toEqual(keys);
  expect(firstKeyAt(specs, command)).toBe(
    keys.length === 0 ? undefined : command.indexOf(keys[0] as string, 1),
  );
});

test.each(['EVAL', 'EVAL s', 'EVAL s x k', 'EVAL s 5 k', 'EVAL s -1 k', 'EVAL s 99999999999 k'])(
  '%s has no keys that can be told',
  (line) => {
    expect(keysAt(readKeySpecs('eval', entry(0, 0, 0)), line.split(' '))).toEqual([]);
  },
);
