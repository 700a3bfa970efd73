import fc from 'fast-check';
import kafkajsCrc32C from 'kafkajs/src/protocol/recordBatch/crc32C/index.js';
import { Crc32c } from '../../../src/services/broker/records/crc32c.js';

function crc32c(...parts: Buffer[]): number {
  const crc = new Crc32c();
  for (const part of parts) crc.add(part);
  return crc.value;
}

test('the check value of the standard', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
  expect(crc32c(Buffer.alloc(0))).toBe(0);
});

test('any bytes have the checksum that kafkajs finds', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(200), (bytes, cut) => {
      const all = Buffer.from(bytes);
      expect(crc32c(all)).toBe(kafkajsCrc32C(all));
      expect(crc32c(all.subarray(0, cut), all.subarray(cut))).toBe(crc32c(all));
    }),
    { numRuns: 1_000 },
  );
});
