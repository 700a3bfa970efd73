import fc from 'fast-check';
import Decoder from 'kafkajs/src/protocol/decoder.js';
import decodeBatch from 'kafkajs/src/protocol/recordBatch/v0/decoder.js';
import { wholly } from '../../../src/lib/slices.js';
import { Unpacking } from '../../../src/services/broker/records/decompress.js';
import { MessagesJson, type ReplyForm } from '../../../src/services/broker/records/messages-json.js';
import { readableBatches } from '../../../src/services/broker/records/record-batches.js';
import { RecordCursor } from '../../../src/services/broker/records/record-cursor.js';
import type { RecordToWrite } from '../../../src/services/broker/records/record-encoder.js';
import type { BrokerRecord } from '../../support/broker/kafka.js';
import { recordBatch } from '../../support/broker/record-batch.js';

const budget = (left = 1_000_000, largest = 1_000_000) => ({ unpacking: new Unpacking(largest), left });

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
  const { batches, next } = await readableBatches(bytes, [], budget());
  return { messages: replies(new RecordCursor('t', 3, batches, from)).flat(), next };
}

const WHOLE = { maxRecords: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };

/** What is in the replies that it takes to hand out everything. */
function replies(cursor: RecordCursor, limits: ReplyForm = WHOLE): BrokerRecord[][] {
  const bodies: BrokerRecord[][] = [];
  for (let isDone = false; !isDone; ) {
    const json = new MessagesJson(limits);
    isDone = wholly(cursor.writeTo(json));
    bodies.push(JSON.parse(String(wholly(json.finish()))));
  }
  return bodies;
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
      const batch = await recordBatch(written, compression);
      expect(await readBack(batch, from)).toEqual({
        messages: expected(written, from),
        next: written.length,
      });
    }),
  );
});

test('replies hold no more records and bytes than they may, but one record at least, and nothing is left out', async () => {
  const limits = fc.record({ maxRecords: fc.integer({ min: 1, max: 8 }), maxBytes: fc.nat(2_000) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(records, { minLength: 1, maxLength: 4 }),
      limits,
      fc.nat(20),
      async (written, limit, from) => {
        const log: Buffer[] = [];
        let base = 0;
        for (const part of written) {
          const batch = Buffer.from(await recordBatch(part, base % 2 === 0 ? 'none' : 'gzip'));
          batch.writeBigInt64BE(BigInt(base), 0);
          log.push(batch);
          base += part.length;
        }
        const { batches } = await readableBatches(Buffer.concat(log), [], budget());
        const cursor = new RecordCursor('t', 3, batches, from);
        const bodies = replies(cursor, limit);
        expect(bodies.flat()).toEqual(expected(written.flat(), from));
        expect(cursor.bytes).toBe(0);
        for (const body of bodies) {
          expect(body.length).toBeLessThanOrEqual(limit.maxRecords);
          const texts = body.flatMap(({ key, value, headers }) => [
            key,
            value,
            ...headers.flatMap((header) => [header.key, header.value]),
          ]);
          if (body.length > 1) expect(Buffer.byteLength(texts.join(''))).toBeLessThanOrEqual(limit.maxBytes);
        }
      },
    ),
  );
});

test('a record that goes beyond its batch is told', async () => {
  const batch = await recordBatch([{ key: null, value: 'v', timestamp: 1, headers: [] }], 'none');
  const broken = Buffer.from(batch);
  broken[61] = 60;
  await expect(readBack(broken)).rejects.toThrow(/beyond the end/);
});

test('kafkajs reads the same out of it', async () => {
  await fc.assert(
    fc.asyncProperty(records, async (written) => {
      const { records: read } = await decodeBatch(new Decoder(await recordBatch(written, 'none')));
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
  const batch = await recordBatch(written, 'none');
  for (let length = 0; length < batch.length; length++) {
    const cut = Buffer.concat([batch, batch.subarray(0, length)]);
    expect(await readBack(cut)).toEqual({ messages: expected(written), next: 1 });
  }
});

test('what an aborted transaction wrote and control records are passed over', async () => {
  const plain = await recordBatch([{ key: null, value: 'plain', timestamp: 1, headers: [] }], 'none');
  const transactional = Buffer.from(plain);
  transactional.writeInt16BE(0x10, 21);
  transactional.writeBigInt64BE(77n, 43);
  const marker = Buffer.from(
    await recordBatch([{ key: '\0\0\0\0', value: '', timestamp: 1, headers: [] }], 'none'),
  );
  marker.writeInt16BE(0x30, 21);
  marker.writeBigInt64BE(77n, 43);
  const log = [plain, transactional, marker, transactional].map((batch, offset) => {
    const placed = Buffer.from(batch);
    placed.writeBigInt64BE(BigInt(offset), 0);
    return placed;
  });
  const { batches, next } = await readableBatches(
    Buffer.concat(log),
    [{ producerId: 77n, firstOffset: 1 }],
    budget(),
  );
  const messages = replies(new RecordCursor('t', 0, batches, 0)).flat();
  expect(messages.map(({ offset }) => offset)).toEqual([0, 3]);
  expect(next).toBe(4);
});

test('formats and codecs that cannot be read are told', async () => {
  const batch = await recordBatch([{ key: null, value: 'v', timestamp: 1, headers: [] }], 'none');
  const old = Buffer.from(batch);
  old.writeInt8(1, 16);
  await expect(readableBatches(old, [], budget())).rejects.toThrow(/before 0.11/);
  for (const codec of [1, 2, 3, 7]) {
    const packed = Buffer.from(batch);
    packed.writeInt16BE(codec, 21);
    await expect(readableBatches(packed, [], budget())).rejects.toThrow(/cannot be unpacked|unknown codec/);
  }
});

/** A log of batches of one compressed record each. */
async function packedLog(sizes: readonly number[]): Promise<Buffer> {
  const log = await Promise.all(
    sizes.map(async (size, i) => {
      const record = { key: null, value: 'x'.repeat(size), timestamp: 1, headers: [] };
      const bytes = Buffer.from(await recordBatch([record], 'gzip'));
      bytes.writeBigInt64BE(BigInt(i), 0);
      return bytes;
    }),
  );
  return Buffer.concat(log);
}

test('a look unpacks no further batch when it has unpacked what it may', async () => {
  const log = await packedLog([100, 100, 100, 100]);
  const read = async (left: number) => {
    const { batches, next } = await readableBatches(log, [], budget(left));
    return [batches.length, next];
  };
  expect(await read(1_000)).toEqual([4, 4]);
  expect(await read(150)).toEqual([2, 2]);
  // one at least, else nobody would come further
  expect(await read(1)).toEqual([1, 1]);
  expect(await read(0)).toEqual([0, undefined]);
});

test('what lies before a batch that is too large is read, and then the error names its offsets', async () => {
  const log = await packedLog([100, 20_000, 100]);
  const { batches, next } = await readableBatches(log, [], budget(1_000_000, 10_000));
  expect([batches.length, next]).toEqual([1, 1]);
  const rest = log.subarray(12 + log.readInt32BE(8));
  await expect(readableBatches(rest, [], budget(1_000_000, 10_000))).rejects.toThrow(
    /more than 10000 bytes .*offsets 1 to 1; broker\.clusters\[\]\.unpackedBytes/,
  );
});
