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

/** How keys and values are written in bodies: as text, or as base64 for bytes that are none. */
const encoding = z
  .enum(['utf8', 'base64'])
  .optional()
  .transform((name) => (name === undefined ? undefined : name === 'base64'));
export const encodingHeader = z.object({ 'broker-encoding': encoding });

/** Strict: a misspelt `partition` or `key` would put the record elsewhere without a word. */
const record = z.strictObject({
  partition: partition.nullish(),
  timestamp: z.int().min(0).nullish(),
  key: text.nullish(),
  value: text.nullable().describe('null: a tombstone, which a compacted topic forgets the key by.'),
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

/** For the documentation. */
export const webhookBody = z.unknown().describe('Anything; the value of the record, byte by byte.');

const timeoutMs = z.int().min(0);
const timeoutText = z
  .string()
  .regex(/^\d{1,12}$/, 'expected milliseconds')
  .transform(Number);
export const timeoutQuery = z.object({ timeout: timeoutText.optional() });

/** Of one reply, as far as the configuration allows it. */
const replyLimits = {
  limit: z.int().min(1).optional().describe('Most records of the reply.'),
  max_bytes: z.int().min(1).optional().describe('Bytes of records after which the reply ends; soft.'),
};
const countText = z
  .string()
  .regex(/^[1-9]\d{0,11}$/, 'expected a number above zero')
  .transform(Number)
  .optional();
export const consumeQuery = timeoutQuery.extend({ limit: countText, max_bytes: countText });

const topicPartitionOffset = z.object({ topic: topicName, partition, offset: offset.default(0) });
export const fetchBody = z
  .object({
    topic: topicName.optional(),
    partition: partition.optional(),
    offset: offset.optional(),
    topicPartitionOffsets: boundedList(topicPartitionOffset, { max: MAX_NAMED, of: 'offsets' }).optional(),
    timeout: timeoutMs.optional(),
    ...replyLimits,
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
    ...replyLimits,
  })
  .refine(
    ({ topic, topics }) => topic !== undefined || (topics ?? []).length > 0,
    'expected topic or topics',
  );

const pointInLog = z.union([offset, z.enum(['earliest', 'latest'])]);
const seek = z
  .strictObject({
    topic: topicName,
    partition: partition.optional().describe('Absent: all partitions.'),
    offset: pointInLog.optional(),
    timestamp: z.int().min(0).optional().describe('ms since 1970: the first record that is not older.'),
  })
  .superRefine(({ partition, offset, timestamp }, context) => {
    const message = (words: string) => context.addIssue({ code: 'custom', message: words });
    if ((offset === undefined) === (timestamp === undefined)) message('expected an offset or a timestamp');
    if (typeof offset === 'number' && partition === undefined) message('an offset needs a partition');
  });
export const seekBody = boundedList(seek, { min: 1, max: 100, orOne: true, of: 'positions' });
export const onlyGroupParams = z.object({ group: label });
export const topicQuery = z.object({ topic: topicName.optional() });

const configName = z.string().regex(/^[a-z0-9._-]{1,200}$/, 'expected the name of a topic setting');
const configValue = z.string().max(10_000);
const partitionCount = z.int().min(1).max(10_000);
export const topicBody = z
  .strictObject({
    partitions: partitionCount.optional(),
    replicationFactor: z.int().min(1).max(100).optional(),
    config: z.record(configName, configValue).optional().describe('Such as {"cleanup.policy": "compact"}.'),
  })
  .default({});
export const topicChangesBody = z
  .strictObject({
    partitions: partitionCount.optional().describe('More than there are.'),
    config: z.record(configName, configValue.nullable()).optional().describe('null: the default.'),
  })
  .refine(({ partitions, config }) => partitions !== undefined || config !== undefined, {
    error: 'expected partitions or config',
  });

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
  'broker-encoding': encoding,
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
  key: z.string().nullable().describe('"" where there is none; null with Broker-Encoding: base64.'),
  value: z.string().nullable().describe('The same of a tombstone.'),
  headers: z.array(header),
});
export const topicPartitionOffsetsReply = z.array(
  z.object({ topic: z.string(), partition: z.int(), offset: z.int() }),
);
export const metadataListReply = z.array(metadataReply);
export const messagesReply = z.array(messageReply);
export const lagReply = z.array(
  z.object({
    topic: z.string(),
    partition: z.int(),
    offset: z.int().describe('Committed: the next that the group reads.'),
    end: z.int(),
    lag: z.int(),
  }),
);
export const topicReply = z.object({
  name: z.string(),
  partitions: z.array(
    z.object({
      partition: z.int(),
      leader: z.int().describe('-1: none at present.'),
      replicas: z.array(z.int()),
      inSync: z.array(z.int()),
    }),
  ),
  config: z.record(z.string(), z.string()),
});
export const groupsQuery = z.object({
  after: label.optional().describe('The cursor of the reply before.'),
  limit: countText.transform((count) => Math.min(count ?? 100, 500)).describe('At most 500, 100 by default.'),
});
export const groupsReply = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      state: z.string().describe('As Kafka has it: Stable, Empty, PreparingRebalance and so on.'),
      members: z.array(z.object({ client: z.string(), host: z.string() })),
    }),
  ),
  cursor: z.string().optional().describe('There are more.'),
});
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

/** Bytes are stored as they are. */
export type RecordInput = Omit<z.output<typeof recordWithTopic>, 'key' | 'value' | 'headers'> & {
  readonly key?: string | Buffer | null | undefined;
  readonly value: string | Buffer | null;
  readonly headers?: readonly { readonly key: string; readonly value: string | Buffer }[] | null | undefined;
};
export type Metadata = z.input<typeof metadataReply>;
export type Message = z.input<typeof messageReply>;
export type ConsumerHeaders = z.output<typeof consumerHeaders>;
/** What a consume asks for: how its instance is made, and what its reply may hold. */
export type ConsumeWishes = ConsumerHeaders & {
  readonly limit?: number | undefined;
  readonly maxBytes?: number | undefined;
};
export type GroupAssignments = z.input<typeof consumersReply>;
