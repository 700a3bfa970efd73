import {
  type Compression,
  encodeRecordBatches,
  type RecordToWrite,
} from '../../../src/services/broker/records/record-encoder.js';

/** One batch as a broker takes it. */
export async function recordBatch(
  records: readonly RecordToWrite[],
  compression: Compression = 'none',
): Promise<Buffer> {
  const [batch] = await encodeRecordBatches([records], compression);
  return batch as Buffer;
}
