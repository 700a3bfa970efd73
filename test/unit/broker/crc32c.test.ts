import fc from 'fast-check';
import kafkajsCrc32C from 'kafkajs/src/protocol/recordBatch/crc32C/index.js';
import { crc32c } from '../../../src/services/broker/crc32c.js';

test('the check value of the standard', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
  expect(crc32c(Buffer.alloc(0))).toBe(0);
});

test('any bytes have the checksum that kafkajs finds', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(crc32c(Buffer.from(bytes))).toBe(kafkajsCrc32C(Buffer.from(bytes)));
    }),
    { numRuns: 1_000 },
  );
});
