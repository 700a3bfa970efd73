import fc from 'fast-check';
import Decoder from 'kafkajs/src/protocol/decoder.js';
import decodeBatch from 'kafkajs/src/protocol/recordBatch/v0/decoder.js';
import { RecordCursor, readableBatches } from '../../../src/services/broker/record-batches.js';
import { encodeRecordBatch, type RecordToWrite } from '../../../src/services/broker/record-encoder.js';

const text = fc.string({ unit: 'grapheme', maxLength: 300 });
const record = fc.record({
  key: fc.option(text),
  value: fc.oneof(
    text,
    text.map((value) => Buffer.from(value)),
  ),
  timestamp: fc.oneof(fc.nat(10), fc.integer({ min: 0, max: 2 ** 45 })),
  headers: fc.array(fc.record({ key: text, value: text }), { maxLength: 4 }),
});
const records = fc.array(record, { minLength: 1, maxLength: 30 });

async function readBack(bytes: Buffer, from = 0) {
  const { batches, next } = await readableBatches(bytes, []);
  const cursor = new RecordCursor('t', 3, batches, from);
  const messages = [];
  for (let one = cursor.next(); one !== undefined; one = cursor.next()) messages.push(one.message);
  return { messages, next };
}

const expected = (written: readonly RecordToWrite[], from = 0) =>
  written
    .map(({ key, value, timestamp, headers }, offset) => ({
      topic: 't',
      partition: 3,
      offset,
      timestamp,
      key: key ?? '',
      value: String(value),
      headers,
    }))
    .slice(from);

test.each(['none', 'gzip'] as const)('what is written with %s is read back', async (compression) => {
  await fc.assert(
    fc.asyncProperty(records, fc.nat(40), async (written, from) => {
      const batch = await encodeRecordBatch(written, compression);
      expect(await readBack(batch, from)).toEqual({
        messages: expected(written, from),
        next: written.length,
      });
    }),
  );
});

test('kafkajs reads the same out of it', async () => {
  await fc.assert(
    fc.asyncProperty(records, async (written) => {
      const { records: read } = await decodeBatch(new Decoder(await encodeRecordBatch(written, 'none')));
      expect(
        read.map(({ offset, timestamp, key, value }) => [
          offset,
          timestamp,
          String(key ?? ''),
          String(value),
        ]),
      ).toEqual(
        written.map(({ key, value, timestamp }, i) => [
          String(i),
          String(timestamp),
          key ?? '',
          String(value),
        ]),
      );
    }),
  );
});

test('a batch that is cut off is left for the next look, wherever the cut is', async () => {
  const written: RecordToWrite[] = [{ key: null, value: 'v', timestamp: 7, headers: [] }];
  const batch = await encodeRecordBatch(written, 'none');
  for (let length = 0; length < batch.length; length++) {
    const cut = Buffer.concat([batch, batch.subarray(0, length)]);
    expect(await readBack(cut)).toEqual({ messages: expected(written), next: 1 });
  }
});

test('what an aborted transaction wrote and control records are passed over', async () => {
  const plain = await encodeRecordBatch([{ key: null, value: 'plain', timestamp: 1, headers: [] }], 'none');
  const transactional = Buffer.from(plain);
  transactional.writeInt16BE(0x10, 21);
  transactional.writeBigInt64BE(77n, 43);
  const marker = Buffer.from(
    await encodeRecordBatch([{ key: '\0\0\0\0', value: '', timestamp: 1, headers: [] }], 'none'),
  );
  marker.writeInt16BE(0x30, 21);
  marker.writeBigInt64BE(77n, 43);
  const log = [plain, transactional, marker, transactional].map((batch, offset) => {
    const placed = Buffer.from(batch);
    placed.writeBigInt64BE(BigInt(offset), 0);
    return placed;
  });
  const { batches, next } = await readableBatches(Buffer.concat(log), [{ producerId: 77n, firstOffset: 1 }]);
  const cursor = new RecordCursor('t', 0, batches, 0);
  expect([cursor.next()?.message.offset, cursor.next()?.message.offset, cursor.next()]).toEqual([
    0,
    3,
    undefined,
  ]);
  expect(next).toBe(4);
});

test('formats and codecs that cannot be read are told', async () => {
  const batch = await encodeRecordBatch([{ key: null, value: 'v', timestamp: 1, headers: [] }], 'none');
  const old = Buffer.from(batch);
  old.writeInt8(1, 16);
  await expect(readableBatches(old, [])).rejects.toThrow(/before 0.11/);
  for (const codec of [1, 2, 3, 7]) {
    const packed = Buffer.from(batch);
    packed.writeInt16BE(codec, 21);
    await expect(readableBatches(packed, [])).rejects.toThrow(/cannot be unpacked|unknown codec/);
  }
});
