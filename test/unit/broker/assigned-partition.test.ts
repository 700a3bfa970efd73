import fc from 'fast-check';
import { wholly } from '../../../src/lib/slices.js';
import { AssignedPartition } from '../../../src/services/broker/read/assigned-partition.js';
import { Unpacking } from '../../../src/services/broker/records/decompress.js';
import { MessagesJson } from '../../../src/services/broker/records/messages-json.js';
import { readableBatches } from '../../../src/services/broker/records/record-batches.js';
import { RecordCursor } from '../../../src/services/broker/records/record-cursor.js';
import type { BrokerRecord } from '../../support/broker/kafka.js';
import { recordBatch } from '../../support/broker/record-batch.js';

const budget = () => ({ unpacking: new Unpacking(1_000_000), left: 1_000_000 });

/** A log of batches of a few records each, and what a broker answers for an offset in it. */
async function logOf(sizes: readonly number[]) {
  const log: { base: number; bytes: Buffer }[] = [];
  let end = 0;
  for (const size of sizes) {
    const records = Array.from({ length: size }, (_, i) => ({
      key: null,
      value: `v${end + i}`,
      timestamp: 1,
      headers: [],
    }));
    const bytes = Buffer.from(await recordBatch(records, 'none'));
    bytes.writeBigInt64BE(BigInt(end), 0);
    log.push({ base: end, bytes });
    end += size;
  }
  const read = async (from: number) => {
    const batch = log.findLast(({ base }) => base <= from) as { bytes: Buffer };
    const { batches, next } = await readableBatches(batch.bytes, [], budget());
    return { records: new RecordCursor('t', 0, batches, from), next: next as number };
  };
  return { end, read };
}

function take(partition: AssignedPartition, maxRecords: number): number[] {
  const json = new MessagesJson({ maxRecords, maxBytes: 1_000_000 });
  wholly(partition.writeTo(json));
  return (JSON.parse(String(wholly(json.finish()))) as BrokerRecord[]).map(({ offset }) => offset);
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant('read' as const) },
  { weight: 4, arbitrary: fc.record({ take: fc.integer({ min: 1, max: 7 }), isSent: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant('drop' as const) },
);

test('whatever is read, sent, not sent and dropped: every record is sent once, in order', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(sizes, fc.array(step, { maxLength: 40 }), async (batches, steps) => {
      const log = await logOf(batches);
      const partition = new AssignedPartition('t', 0, 0);
      partition.end = log.end;
      const sent: number[] = [];
      const readOn = async () => {
        const from = partition.readFrom;
        const { records, next } = await log.read(from);
        partition.add(from, records, next);
      };
      for (const one of steps) {
        if (one === 'drop') partition.drop();
        else if (one !== 'read') {
          const begin = partition.nextOffset;
          const offsets = take(partition, one.take);
          if (one.isSent) sent.push(...offsets);
          else partition.moveTo(begin);
        } else if (partition.hasMore) await readOn();
      }
      while (partition.lag > 0) {
        if (partition.isEmpty) await readOn();
        sent.push(...take(partition, 100));
      }
      expect(sent).toEqual(Array.from({ length: log.end }, (_, offset) => offset));
      expect(partition.bytes).toBe(0);
    }),
  );
});

test('what was asked for before it moved is not taken for what comes next', async () => {
  const log = await logOf([2, 2]);
  const partition = new AssignedPartition('t', 0, 0);
  const first = await log.read(0);
  partition.add(0, first.records, first.next);
  const ahead = await log.read(2);
  expect(take(partition, 10)).toEqual([0, 1]);
  partition.moveTo(0);
  partition.add(2, ahead.records, ahead.next);
  expect(partition.isEmpty).toBe(true);
  expect(partition.readFrom).toBe(0);
});
