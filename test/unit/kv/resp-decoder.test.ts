import fc from 'fast-check';
import {
  ReplyTooLarge,
  RespDecoder,
  RespError,
  RespStatus,
  type RespValue,
} from '../../../src/services/kv/resp/resp-decoder.js';
import { respBytes } from '../../../src/services/kv/resp/resp-reply.js';

function decodeInChunks(bytes: Buffer, sizes: readonly number[], limit?: number): RespValue[] {
  const replies: RespValue[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply));
  if (limit !== undefined) decoder.limit = limit;
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
  fc.constant(undefined),
  fc.stringMatching(/^[A-Z]{1,8}$/).map((text) => new RespStatus(Buffer.from(text))),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.stringMatching(/^[A-Z]{3} [a-z ]{0,20}$/).map((text) => new RespError(text)),
);
const value = fc.letrec<{ any: RespValue }>((tie) => ({
  any: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie('any'), { maxLength: 5 })),
})).any;

test('replies are the same however the stream is cut, and their bytes are those that came', () => {
  fc.assert(
    fc.property(
      fc.array(value, { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 }),
      (values, sizes) => {
        expect(decodeInChunks(respBytes(values), sizes)).toEqual(values);
      },
    ),
  );
});

test('status, nil array and empty array', () => {
  const replies = decodeInChunks(Buffer.from('+OK\r\n*-1\r\n*0\r\n$0\r\n\r\n'), [1_000]);
  expect(replies).toEqual([new RespStatus(Buffer.from('OK')), undefined, [], Buffer.alloc(0)]);
  expect(respBytes(replies).toString()).toBe('+OK\r\n*-1\r\n*0\r\n$0\r\n\r\n');
});

test('an array of 200,000 items in small chunks takes time in proportion', () => {
  const items = Array.from({ length: 200_000 }, (_, i) => `item ${i}`);
  const bytes = respBytes([items.map((item) => Buffer.from(item))]);
  const startedAt = performance.now();
  const [reply] = decodeInChunks(bytes, [1_400]);
  // decoding the array anew at each of the 3,000 chunks would take minutes
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  expect(String(reply)).toBe(String(items));
});

test.each(['?x\r\n', '%1\r\n', '$abc\r\n', 'HTTP/1.1 400 Bad Request\r\n'])('%j is refused', (bytes) => {
  expect(() => decodeInChunks(Buffer.from(bytes), [1_000])).toThrow('not RESP2');
});

test('what is too large is an error, and what follows it is not, however the stream is cut', () => {
  const large = fc.constantFrom<RespValue>(
    Buffer.alloc(5_000, 'x'),
    Array.from({ length: 60 }, (_, i) => Buffer.from(String(i))),
    [[Buffer.alloc(3_000)], Buffer.alloc(4_000), '1'],
  );
  const small = fc.constantFrom<RespValue>('1', null, Buffer.from('abc'), [Buffer.from('a'), [null]]);
  fc.assert(
    fc.property(
      fc.array(fc.oneof(large, small), { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 4 }),
      (values, sizes) => {
        const expected = values.map((reply) => (respBytes([reply]).length > 200 ? 'too large' : reply));
        const decoded = decodeInChunks(respBytes(values), sizes, 4_000);
        expect(decoded.map((reply) => (reply instanceof ReplyTooLarge ? 'too large' : reply))).toEqual(
          expected,
        );
      },
    ),
  );
});

test('a reply that is nested too deep is an error, and the next one is read', () => {
  const replies: RespValue[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply));
  const nested = (depth: number) => Buffer.from(`${'*1\r\n'.repeat(depth)}:1\r\n`);
  for (const depth of [1_000, 1_001, 7_000]) decoder.write(nested(depth));
  decoder.write(Buffer.from('+OK\r\n'));
  expect(replies).toHaveLength(4);
  expect(Array.isArray(replies[0])).toBe(true);
  const told = 'ERR the command ran, but its reply is nested deeper than 1000 arrays';
  expect(replies.slice(1, 3)).toEqual(
    [new RespError(told), new RespError(told)].map((e) => expect.objectContaining(e)),
  );
  expect(replies[3]).toEqual(new RespStatus(Buffer.from('OK')));
});
