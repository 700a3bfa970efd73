import { z } from 'zod';
import { basePath, instanceName, milliseconds, missingReason, secret, tcpPort } from '../../lib/settings.js';
const user = z.strictObject({
    username: z
        .string()
        .regex(/^[\x21-\x39\x3b-\x7e]{1,256}$/, 'expected 1 to 256 printable ASCII characters without blanks and ":"')
        .default('portico')
        .meta({ env: 'PORTICO_BROKER_USERNAME' })
        .describe('Name for HTTP Basic authentication.'),
    password: secret('PORTICO_BROKER_PASSWORD')
        .nullable()
        .default(null)
        .describe('Password for HTTP Basic authentication.'),
});
const cluster = z.strictObject({
    name: instanceName().default('default').describe('Name in logs, metrics and /readyz.'),
    path: basePath().default('/broker').describe('Path that the cluster is served below.'),
    port: tcpPort().nullable().default(null).describe('Own port where the cluster is served at / as well.'),
    brokers: z
        .array(z.string().regex(/^[^\s:,]+:\d{1,5}$|^\[[0-9a-fA-F:.]+\]:\d{1,5}$/, 'expected host:port'))
        .default([])
        .meta({ env: 'PORTICO_KAFKA_BROKERS' })
        .describe('Addresses (host:port) of brokers to begin with; the others are learned from them.'),
    topics: z
        .array(z
        .string()
        .regex(/^[a-zA-Z0-9._-]{1,249}(:[1-9]\d{0,4})?$/, 'expected a topic name, or name:partitions'))
        .default([])
        .meta({ env: 'PORTICO_BROKER_TOPICS' })
        .describe('Topics (name, or name:partitions) that are made at start when they do not exist.'),
    users: z.array(user).min(1).prefault([{}]).describe('Who may use the cluster.'),
    bodyLimit: z
        .int()
        .min(1_024)
        .max(512 * 1024 * 1024)
        .default(10 * 1024 * 1024)
        .describe('Largest request body in bytes.'),
    timeoutMs: milliseconds(10_000, 100).describe('Deadline of a request in ms; fetch and consume get 10 s beyond the time they ask for instead.'),
    maxWaitMs: milliseconds(60_000).describe('Longest time in ms that fetch and consume wait; more is cut to it.'),
    replyRecords: z.int().min(1).max(100_000).default(500).describe('Most records that one consume returns.'),
    replyBytes: z
        .int()
        .min(1_024)
        .max(64 * 1024 * 1024)
        .default(1024 * 1024)
        .describe('Bytes of records after which a fetch or consume returns; soft, a single record may be larger.'),
    idleTimeoutMs: milliseconds(300_000, 100).describe('A consumer instance that nobody asked for so long commits, leaves its group and is closed.'),
    sessionTimeoutMs: milliseconds(10_000, 6_000).describe('How long the partitions of a crashed gateway stay with it; a request can choose another.'),
});
export const brokerConfig = z.strictObject({
    enabled: z.boolean().default(true).describe('Whether the broker service is served.'),
    missing: missingReason('PORTICO_BROKER_MISSING').describe('Why there is no Kafka; set by npm start.'),
    clusters: z.array(cluster).prefault([{}]).describe('Kafka clusters, each served at a path of its own.'),
});
/** Kafka's own rule for topic names. */
const topicName = z
    .string()
    .regex(/^[a-zA-Z0-9._-]{1,249}$/, 'expected 1 to 249 letters, digits, ".", "_" or "-"')
    .refine((name) => name !== '.' && name !== '..', 'may not be "." or ".."');
const partition = z.int().min(0).max(2_147_483_647);
const offset = z.int().min(0);
const label = z
    .string()
    .min(1)
    .max(255)
    .refine((text) => !/\p{Cc}/u.test(text), 'may not hold control characters');
const header = z.strictObject({ key: z.string(), value: z.string() });
/** Strict: a misspelt `partition` or `key` would put the record elsewhere without a word. */
const record = z.strictObject({
    partition: partition.nullish(),
    timestamp: z.int().min(0).nullish(),
    key: z.string().nullish(),
    value: z.string(),
    headers: z.array(header).nullish(),
});
const recordWithTopic = record.extend({ topic: topicName });
const oneOrMany = (schema) => {
    const many = z.array(schema).min(1);
    // chosen by what was sent, so that an error names the key and not "no alternative fits"
    return z.preprocess((body) => (Array.isArray(body) ? body : [body]), many);
};
export const recordsBody = oneOrMany(record);
export const recordsWithTopicBody = oneOrMany(recordWithTopic);
export const topicParams = z.object({ topic: topicName });
export const messageParams = z.object({ topic: topicName, message: z.string() });
export const keyQuery = z.object({ key: z.string().optional() });
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
    topicPartitionOffsets: z.array(topicPartitionOffset).optional(),
    timeout: timeoutMs.optional(),
})
    .superRefine(({ topic, partition, offset, topicPartitionOffsets }, context) => {
    const message = (text) => context.addIssue({ code: 'custom', message: text });
    if (topic !== undefined && partition === undefined)
        message('a topic needs a partition');
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
    topics: z.array(topicName).optional(),
    timeout: timeoutMs.optional(),
})
    .refine(({ topic, topics }) => topic !== undefined || (topics ?? []).length > 0, 'expected topic or topics');
const commitPosition = z.object({ topic: topicName, partition, offset });
/** No body, `{}` and `[]` all mean: what was last delivered. */
export const commitBody = z.preprocess((body) => {
    if (body === undefined || body === null || (typeof body === 'object' && Object.keys(body).length === 0))
        return [];
    return Array.isArray(body) ? body : [body];
}, z.array(commitPosition));
/** Settings of a new instance; `Kafka-*` arrives as `broker-*`. */
export const consumerHeaders = z.object({
    'broker-enable-auto-commit': z
        .enum(['true', 'false'])
        .default('true')
        .transform((text) => text === 'true'),
    'broker-auto-commit-interval': headerInteger(10, 3_600_000, 5_000),
    'broker-auto-offset-reset': z.enum(['earliest', 'latest', 'none']).default('latest'),
    'broker-session-timeout-ms': headerInteger(6_000, 1_800_000, undefined),
});
function headerInteger(min, max, byDefault) {
    return z
        .string()
        .refine((text) => /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max, {
        error: `expected an integer from ${min} to ${max}`,
    })
        .optional()
        .transform((text) => (text === undefined ? byDefault : Number(text)));
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
export const metadataListReply = z.array(metadataReply);
export const messagesReply = z.array(messageReply);
export const topicsReply = z.record(z.string(), z.int());
export const successReply = z.object({ result: z.literal('Success'), status: z.literal(200) });
export const consumersReply = z.array(z.object({
    name: z.string(),
    instances: z.array(z.object({
        name: z.string(),
        topics: z.array(z.object({ topic: z.string(), partitions: z.array(z.int()) })),
    })),
}));
//# sourceMappingURL=schemas.js.map