import fc from 'fast-check';
import { RespDecoder, type RespValue } from '../../../src/services/kv/resp/resp-decoder.js';
import { encodeCommands, type Payload } from '../../../src/services/kv/resp/resp-encoder.js';

const bytesOf = (payload: Payload) =>
  Buffer.concat(
    (typeof payload === 'string' ? [payload] : payload).map((piece) => Buffer.from(piece as string)),
  );

const argument = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
);

test('commands arrive as the bytes that were given, in order', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(argument, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 6 }),
      (commands) => {
        const received: RespValue[] = [];
        // a request has the form of an array reply
        new RespDecoder((reply) => received.push(reply)).write(bytesOf(encodeCommands(commands)));
        expect(received).toEqual(
          commands.map((command) => command.map((part) => Buffer.from(part as string))),
        );
      },
    ),
  );
});

test('text without bytes is one string', () => {
  expect(encodeCommands([['GET', 'ключ']])).toBe('*2\r\n$3\r\nGET\r\n$8\r\nключ\r\n');
  expect(encodeCommands([['A'], ['B', '']])).toBe('*1\r\n$1\r\nA\r\n*2\r\n$1\r\nB\r\n$0\r\n\r\n');
});
