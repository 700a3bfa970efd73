import fc from 'fast-check';
import { largeJson } from '../../../src/services/kv/api/large-json.js';

const jsonOf = (result: string) => JSON.stringify({ result });
const plain = (length: number) => Buffer.alloc(length, 'abc~\u007fé');

it('writes text that needs no escape as it is, and leaves all other to JSON', () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
    fc.nat(20).map((length) => plain(length * 2)),
    fc.string({ unit: 'grapheme', maxLength: 5 }).map((text) => Buffer.from(text)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), fc.nat(7), (pieces, offset) => {
      // at any distance from the beginning of a word
      const value = Buffer.concat([Buffer.alloc(offset), ...pieces]).subarray(offset);
      const text = jsonOf(value.toString('utf8'));
      const needsNone = Buffer.from(text).equals(
        Buffer.from(`{"result":"${value.toString('latin1')}"}`, 'latin1'),
      );
      expect(largeJson(value, 'utf8')?.toString()).toBe(needsNone ? text : undefined);
    }),
    { numRuns: 2_000 },
  );
});

it('sees a control character wherever it is', () => {
  for (let at = 0; at < 40; at++)
    for (const control of [0, 1, 9, 10, 31]) {
      const value = plain(40);
      value[at] = control;
      expect(largeJson(value, 'utf8')).toBeUndefined();
    }
});

it('encodes base64 of any length in pieces', () => {
  for (const length of [0, 1, 2, 3, 49_151, 49_152, 49_153, 49_154, 98_305, 200_000]) {
    const value = Buffer.from(Array.from({ length }, (_, i) => (i * 31) % 256));
    expect(largeJson(value, 'base64')?.toString()).toBe(jsonOf(value.toString('base64')));
  }
});
