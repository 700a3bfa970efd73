import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { createEmulations, type Emulations } from '../../../../src/services/kv/emulations/emulations.js';
import { ScriptDigests } from '../../../../src/services/kv/emulations/script-digests.js';
import { withoutKeyLocking } from '../../../../src/services/kv/emulations/shebang.js';
import type { Argument } from '../../../../src/services/kv/resp/resp-encoder.js';

const sha1 = (script: Argument) => createHash('sha1').update(script).digest('hex');

describe('the flag in the first line', () => {
  test.each([
    ['#!lua flags=allow-key-locking', ''],
    ['#!lua flags="allow-key-locking"', ''],
    ['#!lua flags=allow-key-locking,allow-key-locking flags= ', ''],
    ['#!lua name=f flags=allow-key-locking', '#!lua name=f flags='],
    ['#!js flags=allow-key-locking', '#!js flags='],
    ['#!lua flags=no-writes,allow-key-locking', '#!lua flags=no-writes'],
    ['#!lua flags=allow-key-locking,no-writes,allow-oom', '#!lua flags=no-writes,allow-oom'],
    ['#!lua flags=a,allow-key-locking,b', '#!lua flags=a,b'],
    ['#!lua flags=allow-oom flags=allow-key-locking', '#!lua flags=allow-oom flags='],
    ['#!lua\tflags="allow-key-locking,no-writes" ', '#!lua\tflags="no-writes" '],
    [`#!lua 'flags=allow-key-locking'`, ''],
    ['#!lua flags=allow-key-locking\r', ''],
  ])('%j becomes %j', (line, expected) => {
    const body = '\nreturn "ключ \u0000"';
    expect(withoutKeyLocking(line + body)).toBe(expected + body);
    expect(withoutKeyLocking(Buffer.from(line + body))).toEqual(Buffer.from(expected + body));
  });

  test.each([
    '',
    'return 1',
    '#!lua flags=allow-key-locking',
    '#!lua\n-- flags=allow-key-locking\nreturn 1',
    ' #!lua flags=allow-key-locking\nreturn 1',
    '#!lua flags=Allow-Key-Locking\nreturn 1',
    '#!lua flags=allow-key-locking2\nreturn 1',
    '#!lua allow-key-locking\nreturn 1',
    '#!lua noflags=allow-key-locking\nreturn 1',
  ])('%j stays', (script) => {
    expect(withoutKeyLocking(script)).toBeUndefined();
    expect(withoutKeyLocking(Buffer.from(script))).toBeUndefined();
  });

  test('text and bytes of it are treated alike, and nothing behind the first line changes', () => {
    const script = fc
      .tuple(
        fc.array(fc.constantFrom('#!lua', ' ', 'flags=', 'allow-key-locking', ',', '"', 'no-writes', 'é'), {
          maxLength: 12,
        }),
        fc.string({ unit: 'grapheme' }),
      )
      .map(([line, body]) => `#!lua ${line.join('')}\n${body}`);
    fc.assert(
      fc.property(script, (text) => {
        const stripped = withoutKeyLocking(text);
        expect(withoutKeyLocking(Buffer.from(text))?.toString()).toBe(stripped);
        if (stripped === undefined) return;
        const behind = (whole: string) => whole.slice(whole.indexOf('\n'));
        expect(behind(stripped as string)).toBe(behind(text));
        // done once and for all; a line with stray quotes is Redis' to refuse
        if (!text.includes('"')) expect(withoutKeyLocking(stripped)).toBeUndefined();
      }),
    );
  });
});

describe('digests', () => {
  const script = '#!lua flags=allow-key-locking\nreturn "é"';
  const stored = '\nreturn "é"';
  let emulations: Emulations;
  const sent = (...command: Argument[]) => emulations.emulationOf(String(command[0]), command)?.command;

  beforeEach(() => {
    emulations = createEmulations();
  });

  test.each(['EVAL', 'EVAL_RO'])('%s of the text makes EVALSHA of its own digest work', (name) => {
    expect(sent('EVALSHA', sha1(script), '0')).toBeUndefined();
    expect(sent(name, script, '1', 'k')).toEqual([name, stored, '1', 'k']);
    expect(sent('EVALSHA', sha1(script), '1', 'k')).toEqual(['EVALSHA', sha1(stored), '1', 'k']);
    expect(sent('EVALSHA_RO', Buffer.from(sha1(script).toUpperCase()), '0')).toEqual([
      'EVALSHA_RO',
      sha1(stored),
      '0',
    ]);
    expect(sent('EVALSHA', sha1(stored), '0')).toBeUndefined();
  });

  test('SCRIPT LOAD answers the digest of what was sent', () => {
    const emulation = emulations.emulationOf('SCRIPT', ['SCRIPT', 'load', Buffer.from(script)]);
    expect(emulation?.command).toEqual(['SCRIPT', 'load', Buffer.from(stored)]);
    expect(emulation?.finish(Buffer.from(sha1(stored)))).toEqual(Buffer.from(sha1(script)));
    expect(sent('EVALSHA', sha1(script), '0')).toEqual(['EVALSHA', sha1(stored), '0']);
  });

  test('SCRIPT EXISTS asks for what Redis holds, in the same order', () => {
    sent('EVAL', script, '0');
    expect(sent('SCRIPT', 'EXISTS', 'x', sha1(script), sha1('return 1'))).toEqual([
      'SCRIPT',
      'EXISTS',
      'x',
      sha1(stored),
      sha1('return 1'),
    ]);
  });

  test('of a thousand scripts are kept, the least recently used goes first', () => {
    const digests = new ScriptDigests(2);
    const [a, b, c] = ['a', 'b', 'c'].map(sha1) as [string, string, string];
    digests.remember(a, '1');
    digests.remember(b, '2');
    digests.remember(a, '1');
    expect(digests.find(a)).toBe('1');
    digests.remember(c, '3');
    expect([a, b, c].map((digest) => digests.find(digest))).toEqual(['1', undefined, '3']);
    digests.find(a);
    digests.remember(b, '2');
    expect([a, b, c].map((digest) => digests.find(digest))).toEqual(['1', '2', undefined]);
  });
});
