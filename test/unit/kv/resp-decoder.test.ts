import fc from 'fast-check';
import { RespDecoder, RespError, type RespValue } from '../../../src/services/kv/resp-decoder.js';

function encode(value: RespValue): Buffer {
  if (value === null) return Buffer.from('$-1\r\n');
  if (typeof value === 'string') return Buffer.from(`:${value}\r\n`);
  if (value instanceof RespError) return Buffer.from(`-${value.text}\r\n`);
  if (Array.isArray(value)) return Buffer.concat([Buffer.from(`*${value.length}\r\n`), ...value.map(encode)]);
  return Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, Buffer.from('\r\n')]);
}

function decodeInChunks(bytes: Buffer, sizes: readonly number[]): RespValue[] {
  const replies: RespValue[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply));
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] as number;
    decoder.write(Buffer.from(bytes.subarray(at, at + size)));
    at += size;
  }
  return replies;
}

const leaf: fc.Arbitrary<RespValue> = fc.oneof(
  fc.constant(null),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.stringMatching(/^[A-Z]{3} [a-z ]{0,20}$/).map((text) => new RespError(text)),
);
const value = fc.letrec<{ any: RespValue }>((tie) => ({
  any: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie('any'), { maxLength: 5 })),
})).any;

test('replies are the same however the stream is cut', () => {
  fc.assert(
    fc.property(
      fc.array(value, { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 }),
      (values, sizes) => {
        expect(decodeInChunks(Buffer.concat(values.map(encode)), sizes)).toEqual(values);
      },
    ),
  );
});

test('status, nil array and empty array', () => {
  const replies = decodeInChunks(Buffer.from('+OK\r\n*-1\r\n*0\r\n$0\r\n\r\n'), [1_000]);
  expect(replies).toEqual([Buffer.from('OK'), null, [], Buffer.alloc(0)]);
});

test('an array of 200,000 items in small chunks takes time in proportion', () => {
  const items = Array.from({ length: 200_000 }, (_, i) => `item ${i}`);
  const bytes = encode(items.map((item) => Buffer.from(item)));
  const startedAt = performance.now();
  const [reply] = decodeInChunks(bytes, [1_400]);
  // decoding the array anew at each of the 3,000 chunks would take minutes
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  expect(String(reply)).toBe(String(items));
});

test.each(['?x\r\n', '%1\r\n', '$abc\r\n', 'HTTP/1.1 400 Bad Request\r\n'])('%j is refused', (bytes) => {
  expect(() => decodeInChunks(Buffer.from(bytes), [1_000])).toThrow('not RESP2');
});
