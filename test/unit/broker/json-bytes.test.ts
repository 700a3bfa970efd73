import fc from 'fast-check';
import { wholly } from '../../../src/lib/slices.js';
import { byteSource, JsonBytes, jsonConstant } from '../../../src/services/broker/records/json-bytes.js';

/** Plain letters, what JSON escapes, letters beyond ASCII, bytes that are not UTF-8. */
const bytes = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.string({ unit: fc.constantFrom(..."az {}[]:,'\u007f"), maxLength: 20 }) },
      fc.constantFrom('"', '\\', '\n', '\u0000', '\u001f', '\u2028', 'ä', '€', '\u{1f600}', '\ufeff'),
      fc.uint8Array({ maxLength: 5 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => Buffer.concat(parts.map((part) => Buffer.from(part as string))));

function jsonOf(write: (json: JsonBytes) => void): string {
  const json = new JsonBytes();
  write(json);
  return wholly(json.finish()).toString();
}

test('text is escaped as JSON.stringify escapes it, wherever it lies', () => {
  fc.assert(
    fc.property(bytes, fc.nat(9), fc.nat(9), (text, before, behind) => {
      const source = byteSource(Buffer.concat([Buffer.alloc(before, '"'), text, Buffer.alloc(behind, 0xff)]));
      const json = jsonOf((to) => to.text(source, before, before + text.length));
      expect(`"${json}"`).toBe(JSON.stringify(text.toString()));
    }),
    { numRuns: 2_000 },
  );
});

test('text of any length is the same in slices, wherever it is cut', () => {
  const length = fc.integer({ min: 32 * 1024 - 20, max: 200_000 });
  fc.assert(
    fc.property(bytes, length, fc.nat(3), (unit, size, shift) => {
      const whole = Buffer.alloc(size, unit.length === 0 ? 'a' : unit).subarray(shift);
      const json = jsonOf((to) => wholly(to.longText(byteSource(whole), 0, whole.length)));
      expect(`"${json}"` === JSON.stringify(whole.toString())).toBe(true);
    }),
    { numRuns: 300 },
  );
});

test('every single byte in every place of a word', () => {
  for (let byte = 0; byte < 256; byte++) {
    for (let place = 0; place < 8; place++) {
      const text = Buffer.alloc(8, 'x');
      text[place] = byte;
      expect(`"${jsonOf((to) => to.text(byteSource(text), 0, 8))}"`).toBe(JSON.stringify(text.toString()));
    }
  }
});

test('numbers are written as JSON.stringify writes them', () => {
  const number = fc.oneof(
    fc.maxSafeInteger(),
    fc.integer(),
    fc.nat(1_000),
    fc.nat({ max: 15 }).map((power) => 10 ** power),
    fc.nat({ max: 15 }).map((power) => 10 ** power - 1),
    fc.constantFrom(-1, 0, 1e9, -1e9, 2 ** 31, 2 ** 53, -(2 ** 63), 1e21),
  );
  fc.assert(
    fc.property(number, (value) => {
      expect(jsonOf((to) => to.integer(value))).toBe(JSON.stringify(value === 0 ? 0 : value));
    }),
    { numRuns: 2_000 },
  );
});

test('parts follow each other without gaps, in texts larger than what is set aside', () => {
  const word = fc.string({ unit: 'grapheme', maxLength: 40 });
  fc.assert(
    fc.property(fc.array(fc.tuple(word, fc.nat(), fc.nat(600_000)), { maxLength: 5 }), (parts) => {
      const expected = parts
        .map(([name, number, length]) => name + number + '\\u0001'.repeat(length))
        .join('');
      const json = jsonOf((to) => {
        for (const [name, number, length] of parts) {
          to.constant(jsonConstant(name));
          to.integer(number);
          to.text(byteSource(Buffer.alloc(length, 1)), 0, length);
        }
      });
      expect(json === expected).toBe(true);
    }),
    { numRuns: 30 },
  );
});

test('two texts that are written at the same time do not mix, and a finished one does not change', () => {
  const a = new JsonBytes();
  const b = new JsonBytes();
  a.constant(jsonConstant('first'));
  b.constant(jsonConstant('second'));
  a.integer(1);
  b.integer(2);
  const first = wholly(a.finish());
  const later = new JsonBytes();
  later.constant(jsonConstant('xxxxxxxxxxxx'));
  expect([first, wholly(b.finish()), wholly(later.finish())].map(String)).toEqual([
    'first1',
    'second2',
    'xxxxxxxxxxxx',
  ]);
});
