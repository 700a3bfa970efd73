import fc from 'fast-check';
import { HttpError } from '../../../src/http/errors.js';
import { commandOfJson, commandsOfJson } from '../../../src/services/kv/api/json-arguments.js';

const command = (text: string) => commandOfJson(Buffer.from(text));
const commands = (text: string) => commandsOfJson(Buffer.from(text));

test.each([
  ['["SET","k","v"]', ['SET', 'k', 'v']],
  ['[]', []],
  ['["SET","n",9007199254740993]', ['SET', 'n', '9007199254740993']],
  [
    '["SET","n",-9223372036854775808,1.0,1e3,-0,2.50]',
    ['SET', 'n', '-9223372036854775808', '1.0', '1e3', '-0', '2.50'],
  ],
  ['["SET","12\\"34\\\\",56,"\\\\\\"7",8]', ['SET', '12"34\\', '56', '\\"7', '8']],
  ['["SET","k",true,false]', ['SET', 'k', 'true', 'false']],
  [' [ "GET" , "a" ] ', ['GET', 'a']],
])('%s', (text, expected) => {
  expect(command(text)).toEqual(expected);
});

test('numbers of rows keep to their rows', () => {
  expect(commands('[["a",1],["b"],["c",9007199254740993,"2",3.0]]')).toEqual([
    ['a', '1'],
    ['b'],
    ['c', '9007199254740993', '2', '3.0'],
  ]);
});

test('every number is sent as written', () => {
  const literal = fc.oneof(
    fc.bigInt().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => JSON.stringify(n)),
  );
  const text = fc.string({ unit: 'grapheme' });
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          literal.map((n) => ({ n })),
          text.map((s) => ({ s })),
        ),
      ),
      (items) => {
        const body = `[${items.map((item) => ('n' in item ? item.n : JSON.stringify(item.s))).join(' , ')}]`;
        expect(command(body)).toEqual(items.map((item) => ('n' in item ? item.n : item.s)));
      },
    ),
  );
});

test.each([
  ['', 'empty body'],
  ['null', 'expected a JSON array'],
  ['"GET"', 'expected a JSON array'],
  ['{"a":1}', 'expected a JSON array'],
  ['["GET","a"', 'not valid JSON'],
  ['["GET",null]', 'null args'],
  ['["GET",{}]', 'unsupported arg type'],
  ['["GET",["a"]]', 'unsupported arg type'],
  ['['.repeat(100_000), 'not valid JSON'],
])('%.20s is refused: %s', (text, reason) => {
  expect(() => command(text)).toThrow(reason);
  expect(() => command(text)).toThrow(HttpError);
});

test.each([
  ['[]', 'empty pipeline'],
  ['["GET","a"]', 'array of arrays'],
  ['[["GET","a"],null]', 'array of arrays'],
  ['[["GET","a"],["GET",{}]]', 'unsupported arg type'],
])('rows %s are refused: %s', (text, reason) => {
  expect(() => commands(text)).toThrow(reason);
});

test('bytes that are not UTF-8 are refused, not replaced', () => {
  expect(() => commandOfJson(Buffer.from('5b22ff225d', 'hex'))).toThrow('not valid UTF-8');
});

test('large strings are the same bytes, whether or not they need escapes', () => {
  const filler = fc.constantFrom('x'.repeat(16_384), 'é'.repeat(9_000), 'a'.repeat(40_000));
  const text = fc
    .tuple(
      fc.string({ unit: 'grapheme', maxLength: 5 }),
      fc.option(filler, { nil: '' }),
      fc.string({ maxLength: 3 }),
    )
    .map((parts) => parts.join(''));
  const bytes = (row: readonly (string | Buffer)[]) =>
    row.map((argument) => Buffer.from(argument).toString());
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.oneof(text, fc.integer()), { minLength: 1 }), { minLength: 1 }),
      (rows) => {
        const texts = rows.map((row) => row.map(String));
        expect(commands(JSON.stringify(rows)).map(bytes)).toEqual(texts);
        expect(bytes(command(JSON.stringify(rows[0])))).toEqual(texts[0]);
      },
    ),
  );
});

test.each(['\n', '\u0000', '\\x', '\\ud8'])('a large string with %j is no JSON', (part) => {
  expect(() => command(`["SET","k","${'x'.repeat(20_000)}${part}"]`)).toThrow('not valid JSON');
});

test('a large string that does not end is no JSON', () => {
  expect(() => command(`["SET","k","${'x'.repeat(20_000)}`)).toThrow('not valid JSON');
});
