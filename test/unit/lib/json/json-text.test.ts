import fc from 'fast-check';
import { arrayText, jsonText, jsonTextWithin, stringTexts } from '../../../../src/lib/json/json-text.js';
import { anyCharacter } from '../../../support/any-character.js';

const long = fc
  .tuple(fc.constantFrom('x', '\u0001', '"', 'é', '😀', '\ud83d', 'a😀'), fc.nat({ max: 200_000 }))
  .map(([unit, times]) => unit.repeat(times));
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' }),
  long,
  fc.tuple(long, fc.string({ unit: anyCharacter })).map(([text, name]) => ({ [name]: [text, {}, []], text })),
);

test('makes of any value what JSON.stringify makes of it', async () => {
  const property = fc.asyncProperty(value, async (given) => {
    expect(await jsonText(given)).toBe(JSON.stringify(given));
  });
  await fc.assert(property, { numRuns: 100 });
});

test('leaves out what has no value', async () => {
  expect(await jsonText({ a: undefined, b: 1, c: undefined })).toBe('{"b":1}');
});

test('takes as many characters as it may, and not one more', async () => {
  const property = fc.asyncProperty(value, async (given) => {
    const text = JSON.stringify(given);
    expect(await jsonTextWithin(given, text.length)).toBe(text);
    expect(await jsonTextWithin(given, text.length - 1)).toBeUndefined();
  });
  await fc.assert(property, { numRuns: 50 });
});

test('makes the same of a string and of an array, in whatever parts', async () => {
  const elements = fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 20 });
  const property = fc.asyncProperty(
    long,
    elements,
    fc.integer({ min: 1, max: 7 }),
    async (text, list, atOnce) => {
      expect([...stringTexts(text)].join('')).toBe(JSON.stringify(text));
      expect(await arrayText(list, atOnce)).toBe(JSON.stringify(list));
      expect(await arrayText(list, atOnce, (one) => [one])).toBe(JSON.stringify(list.map((one) => [one])));
    },
  );
  await fc.assert(property, { numRuns: 50 });
});
