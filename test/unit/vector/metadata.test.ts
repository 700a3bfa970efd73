import fc from 'fast-check';
import { HttpError } from '../../../src/http/errors.js';
import { checkBytes, METADATA_DEPTH, metadataText } from '../../../src/services/vector/records/metadata.js';

const object = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue());

function refusal(metadata: Record<string, unknown>, maxBytes = 1_000_000): string | undefined {
  try {
    metadataText(metadata, maxBytes, 'm');
    return undefined;
  } catch (error) {
    if (error instanceof HttpError && error.status === 422) return error.message;
    throw error;
  }
}

function nested(levels: number): Record<string, unknown> {
  let value: Record<string, unknown> = {};
  for (let i = 1; i < levels; i++) value = { a: value };
  return value;
}

test('is the same JSON again', () => {
  fc.assert(
    fc.property(object, (metadata) => {
      fc.pre(!JSON.stringify(metadata).includes('\\u0000'));
      expect(JSON.parse(metadataText(metadata, 1_000_000, 'm'))).toEqual(
        JSON.parse(JSON.stringify(metadata)),
      );
    }),
  );
});

test('finds U+0000 and lone surrogates in keys and values, behind any number of backslashes', () => {
  const bad = fc.constantFrom('\0', '\ud800', '\udfff', '\udbff');
  const backslashes = fc.nat({ max: 5 }).map((n) => '\\'.repeat(n));
  fc.assert(
    fc.property(backslashes, bad, fc.boolean(), (before, character, inKey) => {
      const text = before + character;
      expect(refusal(inKey ? { [text]: 1 } : { a: [text] })).toMatch(/U\+0000 or half of a surrogate pair/);
    }),
  );
});

test('text that only looks like such an escape is fine', () => {
  const literals = ['\\u0000', '\\\\u0000', '\\ud800', 'u0000', '\u{1f600}'];
  expect(literals.map((text) => refusal({ a: text, [text]: 1 }))).toEqual(literals.map(() => undefined));
});

test('keeps __proto__ as an ordinary key', () => {
  const metadata = JSON.parse('{"__proto__":{"a":1}}') as Record<string, unknown>;
  expect(metadataText(metadata, 100, 'm')).toBe('{"__proto__":{"a":1}}');
});

test('is bounded in depth and size', () => {
  expect(refusal(nested(METADATA_DEPTH))).toBeUndefined();
  expect(refusal(nested(METADATA_DEPTH + 1))).toBe(`m: nested deeper than ${METADATA_DEPTH} levels`);
  expect(refusal(nested(2_000))).toBe(`m: nested deeper than ${METADATA_DEPTH} levels`);
  expect(refusal({ a: 'é' }, 10)).toBeUndefined();
  expect(refusal({ a: 'éé' }, 10)).toBe('m: 12 bytes, more than the limit of 10');
  expect(() => checkBytes('éé', 3, 'd')).toThrow('d: 4 bytes, more than the limit of 3');
});

test('numbers that JSON.parse made infinite are refused, not stored as null', () => {
  expect(refusal(JSON.parse('{"a":[1e999]}') as Record<string, unknown>)).toBe(
    'm: holds a number beyond float64',
  );
});
