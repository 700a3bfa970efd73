import fc from 'fast-check';
import { JSON_BOUNDS, JsonProblem } from '../../../../src/lib/json/json-bounds.js';
import { parseInPieces } from '../../../../src/lib/json/sliced-json.js';
import { wholly } from '../../../../src/lib/slices.js';
import { anyCharacter } from '../../../support/any-character.js';

const parse = (text: string) => wholly(parseInPieces(Buffer.from(text)));

const small = fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' });
const repeated = fc
  .tuple(fc.constantFrom('x', '\\', '"', '\n', 'é', '😀', '\ud83d', '",['), fc.nat({ max: 90_000 }))
  .map(([unit, times]) => unit.repeat(times));
const key = fc.oneof(fc.string({ unit: anyCharacter }), fc.constant('__proto__'));
/** What is longer than a piece, in different places. */
const large = fc
  .tuple(fc.oneof(small, repeated), fc.nat({ max: 3_000 }), fc.integer({ min: 0, max: 4 }), key)
  .map(([one, times, kind, name]): unknown => {
    const count = Math.min(times, Math.ceil(300_000 / JSON.stringify(one).length));
    const list = Array(count).fill(one);
    if (kind === 0) return list;
    if (kind === 1) return Object.fromEntries(list.map((value, i) => [`k${i}`, value]));
    if (kind === 2) return { [name]: { list }, one };
    return kind === 3 ? [[list, one], { [name]: list }] : one;
  });
const text = fc
  .tuple(fc.oneof(small, large), fc.constantFrom(undefined, 1, '\t\r\n '))
  .map(([json, blanks]) => JSON.stringify(json, null, blanks));

test('makes of any JSON what JSON.parse makes of it', () => {
  fc.assert(
    fc.property(text, (json) => {
      expect(parse(json)).toEqual(JSON.parse(json));
    }),
    { numRuns: 30 },
  );
});

test('refuses what JSON.parse refuses, and nothing else', () => {
  const broken = fc
    .tuple(text, fc.nat(), fc.constantFrom(',', '[', ']', '{', '}', '"', '\\', ' ', '1', ':'))
    .map(([json, place, letter]) => {
      const at = place % json.length;
      return json.slice(0, at) + letter + json.slice(at + 1);
    });
  fc.assert(
    fc.property(broken, (json) => {
      let expected: unknown = JsonProblem;
      try {
        expected = JSON.parse(Buffer.from(json).toString());
      } catch {}
      if (expected === JsonProblem) expect(() => parse(json)).toThrow(JsonProblem);
      else expect(parse(json)).toEqual(expected);
    }),
    { numRuns: 30 },
  );
});

test.each([
  ['', 0],
  ['[1,2', 4],
  ['[1,2]]', 5],
  [`[${'1,'.repeat(100_000)}x]`, 200_001],
  [`{"a":[${'1,'.repeat(100_000)}]}`, 200_006],
  [`["${'a'.repeat(100_000)}" 1]`, 100_004],
])('says about where it is wrong: %#', (json, at) => {
  expect.assertions(2);
  try {
    parse(json);
  } catch (error) {
    expect((error as JsonProblem).message).toBe('not valid JSON');
    // the piece, or in it where JSON.parse tells
    expect(Math.abs(((error as JsonProblem).at as number) - at)).toBeLessThan(100_000);
  }
});

test.each([
  ['depth', '['.repeat(JSON_BOUNDS.depth + 1), /nested deeper than 256 levels/],
  ['objects', `[${'{},'.repeat(JSON_BOUNDS.things)}1]`, /more than 500000 strings, arrays and objects/],
  ['strings', `[${'"a",'.repeat(JSON_BOUNDS.things)}1]`, /more than 500000 strings/],
  ['numbers', `[${'1,'.repeat(JSON_BOUNDS.values)}1]`, undefined],
  ['more numbers', `[${'1,'.repeat(JSON_BOUNDS.values + 1)}1]`, /more than 4000000 values/],
  [
    'keys',
    `[${Array.from({ length: 80_000 }, (_, i) => `{"k${i}":1}`).join(',')}]`,
    /more than 65536 different keys/,
  ],
  ['equal keys', `[${'{"k":1},'.repeat(100_000)}1]`, undefined],
  ['a long key', `{"${'k'.repeat(100_000)}":1}`, /a key of more than/],
  ['blanks', ' '.repeat(2_000_000), /blanks of more than 1048576 bytes/],
  ['a long number', `${'9'.repeat(2_000_000)}`, /a number, a key or blanks of more than/],
  ['bytes', '\uffff', /not valid JSON/],
])('bounds %s', (_, json, message) => {
  if (message === undefined) expect(parse(json)).toHaveProperty('length');
  else expect(() => parse(json)).toThrow(message);
});

test('takes UTF-8 only', () => {
  expect(() => wholly(parseInPieces(Buffer.from([0x22, 0xff, 0x22])))).toThrow('not valid UTF-8');
});
