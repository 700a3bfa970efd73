import fc from 'fast-check';
import { wholly } from '../../../src/lib/slices.js';
import { isLarge, listPieces, replyPieces } from '../../../src/services/kv/api/large-json.js';
import { replyJson } from '../../../src/services/kv/api/reply.js';
import { RespError, RespStatus, type RespValue } from '../../../src/services/kv/resp/resp-decoder.js';
import { anyCharacter } from '../../support/any-character.js';

const bytes = fc.oneof(
  fc.uint8Array().map((array) => Buffer.from(array)),
  fc.string({ unit: anyCharacter }).map((text) => Buffer.from(text)),
  fc
    .tuple(fc.constantFrom('a', 'é', '😀', '"', '\n', '\xff'), fc.nat({ max: 300_000 }))
    .map(([unit, times]) =>
      Buffer.from(unit.repeat(Math.min(times, 150_000)), unit === '\xff' ? 'latin1' : 'utf8'),
    ),
  fc.constant(Buffer.from('OK')),
);
const { reply } = fc.letrec<{ reply: RespValue }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 3 },
    bytes,
    fc.bigInt().map(String),
    fc.constantFrom<RespValue>(null, undefined, new RespStatus(Buffer.from('OK'))),
    fc.string().map((text) => new RespError(`ERR ${text}`)),
    fc.array(tie('reply'), { maxLength: 5 }),
  ),
}));

test.each(['utf8', 'base64'] as const)('writes in slices what is written in one go: %s', (encoding) => {
  fc.assert(
    fc.property(reply, fc.array(reply, { maxLength: 4 }), (one, several) => {
      expect(wholly(replyPieces(one, encoding)).toString()).toBe(replyJson(one, encoding));
      const list = `[${several.map((value) => replyJson(value, encoding)).join(',')}]`;
      expect(wholly(listPieces(several, encoding)).toString()).toBe(list);
    }),
    { numRuns: 50 },
  );
});

test('tells what takes long', () => {
  const small = Buffer.from('x');
  expect(isLarge(small)).toBe(false);
  expect(isLarge(Array(1_000).fill(small))).toBe(false);
  expect(isLarge(Array(10_000).fill(small))).toBe(true);
  expect(isLarge(Array(100).fill(Array(100).fill(small)))).toBe(true);
  expect(isLarge(Buffer.alloc(2 * 1024 * 1024))).toBe(true);
});
