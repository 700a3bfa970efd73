import { z } from 'zod';
import { boundedList } from '../../lib/bounded-list.js';

/** Records of one produce. */
const MAX_RECORDS = 100_000;
/** Headers of a record, topics, partitions, positions: far more than anybody has, few enough to be checked at once. */
const MAX_NAMED = 10_000;

/** Kafka's own rule for topic names. */
const topicName = z
  .string()
  .regex(/^[a-zA-Z0-9._-]{1,249}$/, 'expected 1 to 249 letters, digits, ".", "_" or "-"')
  .refine((name) => name !== '.' && name !== '..', 'may not be "." or ".."');

const partition = z.int().min(0).max(2_147_483_647);
const offset = z.int().min(0);

/** Half a surrogate pair cannot be UTF-8: it would be stored as another character. */
const text = z.string().refine((value) => value.isWellFormed(), 'holds half a surrogate pair');

const label = text
  .min(1)
  .max(255)
  .refine((text) => !/\p{Cc}/u.test(text), 'may not hold control characters');

const header = z.strictObject({ key: text, value: text });

/** Strict: a misspelt `partition` or `key` would put the record elsewhere without a word. */
const record = z.strictObject({
  partition: partition.nullish(),
  timestamp: z.int().min(0).nullish(),
  key: text.nullish(),
  value: text,
  headers: boundedList(header, { max: MAX_NAMED, of: 'headers' }).nullish(),
});
const recordWithTopic = record.extend({ topic: topicName });

const records = { min: 1, max: MAX_RECORDS, orOne: true, of: 'records' };
export const recordsBody = boundedList(record, records);
export const recordsWithTopicBody = boundedList(recordWithTopic, records);

export const topicParams = z.object({ topic: topicName });
export const messageParams = z.object({ topic: topicName, message: z.string() });
export const keyQuery = z.object({ key: z.string().optional() });
export const webhookQuery = z.object({
  topic: topicName,
  user: z.string().optional(),
  pass: z.string().optional(),
});

const timeoutMs = z.int().min(0);
const timeoutText = z
  .string()
  .regex(/^\d{1,12}$/, 'expected milliseconds')
  .transform(Number);
export const timeoutQuery = z.object({ timeout: timeoutText.optional() });

const topicPartitionOffset = z.object({ topic: topicName, partition, offset: offset.default(0) });
export const fetchBody = z
  .object({
    topic: topicName.optional(),
    partition: partition.optional(),
    offset: offset.optional(),
    topicPartitionOffsets: boundedList(topicPartitionOffset, { max: MAX_NAMED, of: 'offsets' }).optional(),
    timeout: timeoutMs.optional(),
  })
  .superRefine(({ topic, partition, offset, topicPartitionOffsets }, context) => {
    const message = (text: string) => context.addIssue({ code: 'custom', message: text });
    if (topic !== undefined && partition === undefined) message('a topic needs a partition');
    if (topic === undefined && (partition !== undefined || offset !== undefined))
      message('a partition or offset needs a topic');
    if (topic === undefined && (topicPartitionOffsets ?? []).length === 0)
      message('expected a topic with its partition, or topicPartitionOffsets');
  });

export const groupParams = z.object({ group: label, instance: label });
export const groupTopicParams = groupParams.extend({ topic: topicName });

export const consumeBody = z
  .object({
    topic: topicName.optional(),
    topics: boundedList(topicName, { max: MAX_NAMED, of: 'topics' }).optional(),
    timeout: timeoutMs.optional(),
  })
  .refine(
    ({ topic, topics }) => topic !== undefined || (topics ?? []).length > 0,
    'expected topic or topics',
  );

const commitPosition = z.object({ topic: topicName, partition, offset });
const topicPartition = z.object({ topic: topicName, partition });
export const topicPartitionsBody = boundedList(topicPartition, {
  min: 1,
  max: MAX_NAMED,
  orOne: true,
  of: 'partitions',
});
export const timestampParams = z.object({
  timestamp: z
    .string()
    .regex(/^(\d{1,15}|earliest|latest)$/, 'expected milliseconds since 1970, earliest or latest')
    .transform((point) => (point === 'earliest' || point === 'latest' ? point : Number(point))),
});

/** No body, `{}` and `[]` all mean: what was last delivered. */
export const commitBody = z.preprocess(
  (body) => {
    const isEmpty = !Array.isArray(body) && typeof body === 'object' && Object.keys(body ?? {}).length === 0;
    return body === undefined || isEmpty ? [] : body;
  },
  boundedList(commitPosition, { max: MAX_NAMED, orOne: true, of: 'positions' }),
);

/** Settings of a new instance; `Kafka-*` arrives as `broker-*`. */
export const consumerHeaders = z.object({
  'broker-enable-auto-commit': z
    .enum(['true', 'false'])
    .default('true')
    .transform((text) => text === 'true'),
  'broker-auto-commit-interval': headerInteger(10, 3_600_000, 5_000),
  'broker-auto-offset-reset': z.enum(['earliest', 'latest', 'none']).default('latest'),
  'broker-session-timeout-ms': headerInteger(6_000, 1_800_000, undefined),
  'broker-redeliver': z
    .enum(['true', 'false'])
    .optional()
    .transform((text) => (text === undefined ? undefined : text === 'true')),
  'broker-acknowledge': deliveryId(),
});
export const commitHeaders = z.object({ 'broker-acknowledge': deliveryId() });

/** What the header `Broker-Delivery` of a reply says. */
function deliveryId() {
  return z.string().min(1).max(100).optional();
}

function headerInteger<D extends number | undefined>(min: number, max: number, byDefault: D) {
  return z
    .string()
    .refine((text) => /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max, {
      error: `expected an integer from ${min} to ${max}`,
    })
    .optional()
    .transform((text) => (text === undefined ? byDefault : Number(text)) as number | D);
}

export const metadataReply = z.object({
  topic: z.string(),
  partition: z.int(),
  offset: z.int(),
  timestamp: z.int(),
});
export const messageReply = metadataReply.extend({
  key: z.string(),
  value: z.string(),
  headers: z.array(header),
});
export const topicPartitionOffsetsReply = z.array(
  z.object({ topic: z.string(), partition: z.int(), offset: z.int() }),
);
export const metadataListReply = z.array(metadataReply);
export const messagesReply = z.array(messageReply);
export const topicsReply = z.record(z.string(), z.int());
export const successReply = z.object({ result: z.literal('Success'), status: z.literal(200) });
export const consumersReply = z.array(
  z.object({
    name: z.string(),
    instances: z.array(
      z.object({
        name: z.string(),
        topics: z.array(z.object({ topic: z.string(), partitions: z.array(z.int()) })),
      }),
    ),
  }),
);

/** A value of bytes is stored as it is. */
export type RecordInput = Omit<z.output<typeof recordWithTopic>, 'value'> & {
  readonly value: string | Buffer;
};
export type Metadata = z.input<typeof metadataReply>;
export type Message = z.input<typeof messageReply>;
export type ConsumerHeaders = z.output<typeof consumerHeaders>;
export type GroupAssignments = z.input<typeof consumersReply>;
