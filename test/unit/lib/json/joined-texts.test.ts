import fc from 'fast-check';
import { arrayOf, joinedTexts } from '../../../../src/lib/json/joined-texts.js';

const SHORT = 64 * 1024;

it('joins texts of any length and letters, as text or as its bytes', async () => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', '"', 'é', '€', '😀', '\ud83d') }),
    fc.nat(40_000).map((length) => 'é'.repeat(length)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(text, { maxLength: 20 }), async (texts) => {
      const joined = await joinedTexts(texts);
      // half of a character is U+FFFD in UTF-8, so each text is encoded as it is alone
      const alone = texts.map((one) => Buffer.from(one).toString());
      expect(Buffer.from(joined as Buffer).toString()).toBe(alone.join(''));
    }),
  );
  expect(joinedTexts(['a', 'b'])).toBe('ab');
  expect(await joinedTexts(['a', 'b'.repeat(SHORT)])).toBeInstanceOf(Uint8Array);
});

it('makes arrays of no, one and several elements', () => {
  expect([[], ['1'], ['1', '{}', '"a"']].map((elements) => arrayOf(elements).join(''))).toEqual([
    '[]',
    '[1]',
    '[1,{},"a"]',
  ]);
});
