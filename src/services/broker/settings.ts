import { z } from 'zod';
import { HOST_AND_PORT } from '../../lib/address.js';
import { oauthSettings } from '../../lib/outbound/access-token.js';
import {
  basePath,
  idempotencyWindow,
  instanceName,
  milliseconds,
  missingReason,
  secret,
  serviceSwitch,
  tcpPort,
} from '../../lib/settings/settings.js';
import { addTlsIssues, givenTlsFiles, tlsFiles, tlsProblems } from '../../lib/tls.js';
import { COMPRESSIONS, compressor } from './records/record-encoder.js';

const hostAndPort = () => z.string().regex(HOST_AND_PORT, 'expected host:port');

/** What a user, or a token made at run time, may do with which topics. */
const permissionFields = {
  topicPattern: z
    .string()
    .regex(
      /^([a-zA-Z0-9._-]{1,249}|[a-zA-Z0-9._-]{0,249}\*)(,([a-zA-Z0-9._-]{1,249}|[a-zA-Z0-9._-]{0,249}\*)){0,99}$/,
      'expected topics and beginnings of some with *, with commas between them',
    )
    .default('*')
    .describe(
      "Topics that the user may name, with commas between them: whole names, or beginnings with * at the end. Those that begin with __ are Kafka's own: only a pattern that begins so has room for them.",
    ),
  permission: z
    .enum(['full', 'produce', 'consume'])
    .default('full')
    .describe('What the user may do with them.'),
  topicAdmin: z
    .boolean()
    .default(false)
    .describe('Whether the user may make, change and delete such topics.'),
};

/** Of a token made at run time. */
export const issuedPermissions = z.strictObject(permissionFields);
export type IssuedPermissions = z.output<typeof issuedPermissions>;

const user = z.strictObject({
  username: z
    .string()
    .regex(
      /^[\x21-\x39\x3b-\x7e]{1,256}$/,
      'expected 1 to 256 printable ASCII characters without blanks and ":"',
    )
    .default('portico')
    .meta({ env: 'PORTICO_BROKER_USERNAME' })
    .describe('Name for HTTP Basic authentication.'),
  password: secret('PORTICO_BROKER_PASSWORD')
    .nullable()
    .default(null)
    .describe('Password for HTTP Basic authentication.'),
  ...permissionFields,
  maxInstances: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Most consumer instances that the user may have at a time; null: as many as the topics that the user may name have partitions.',
    ),
  recordsPerSecond: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Records a second that the user may write and read in each process of the gateway (429); null: any number.',
    ),
  bytesPerSecond: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('The same in bytes: of keys and values that are written, of replies that are read.'),
  groupPrefix: z
    .string()
    .regex(/^[\x21-\x7e]{0,100}$/, 'expected up to 100 printable ASCII characters without blanks')
    .nullable()
    .default(null)
    .describe(
      'Begins the names of the user\'s consumer groups in Kafka; users with the same one share them. null: nothing for the first user, "name:" for the others.',
    ),
});

const tls = z
  .strictObject({
    enabled: z.boolean().default(false).describe('Whether the brokers are spoken to with TLS.'),
    ...tlsFiles,
  })
  .superRefine(({ enabled, ...files }, context) => {
    const problem = 'the brokers are spoken to without TLS: expected enabled: true beside it';
    const unused = () => givenTlsFiles(files).map((key) => ({ key, problem }));
    addTlsIssues(context, enabled ? tlsProblems(files) : unused());
  });

const sasl = z
  .strictObject({
    mechanism: z
      .enum(['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'])
      .nullable()
      .default(null)
      .describe('How the gateway proves to the brokers who it is; null where they do not ask.'),
    username: z.string().min(1).nullable().default(null).describe('Name of the gateway in Kafka.'),
    password: z.string().min(1).nullable().default(null).meta({ secret: true }).describe('Its password.'),
    oauth: oauthSettings.prefault({}).describe('Who gives the tokens of oauthbearer.'),
  })
  .refine(
    ({ mechanism, username, password }) =>
      mechanism === null || mechanism === 'oauthbearer' || (username !== null && password !== null),
    {
      error: 'a mechanism needs username and password',
    },
  )
  .refine(({ mechanism, oauth }) => (mechanism === 'oauthbearer') === (oauth.tokenUrl !== null), {
    error: 'oauthbearer and oauth.tokenUrl belong together',
    path: ['oauth', 'tokenUrl'],
  })
  .refine(
    ({ mechanism, username, password }) =>
      (mechanism !== null && mechanism !== 'oauthbearer') || (username === null && password === null),
    {
      error: 'expected a mechanism beside username and password, which nobody would be told',
    },
  );

const cluster = z.strictObject({
  name: instanceName().default('default').describe('Name in logs, metrics and /readyz.'),
  path: basePath().default('/broker').describe('Path that the cluster is served below.'),
  port: tcpPort().nullable().default(null).describe('Own port where the cluster is served at / as well.'),
  brokers: z
    .array(hostAndPort())
    .default([])
    .meta({ env: 'PORTICO_KAFKA_BROKERS' })
    .describe('Addresses (host:port) of brokers to begin with; the others are learned from them.'),
  tls: tls.prefault({}).describe('TLS towards Kafka.'),
  sasl: sasl.prefault({}).describe('SASL towards Kafka.'),
  topics: z
    .array(
      z
        .string()
        .regex(/^[a-zA-Z0-9._-]{1,249}(:[1-9]\d{0,4})?$/, 'expected a topic name, or name:partitions'),
    )
    .default([])
    .meta({ env: 'PORTICO_BROKER_TOPICS' })
    .describe('Topics (name, or name:partitions) that are made at start when they do not exist.'),
  users: z.array(user).min(1).prefault([{}]).meta({ reload: true }).describe('Who may use the cluster.'),
  connectTimeoutMs: milliseconds(6_000, 100).describe(
    'A connection to a broker that is not made by then (TCP, TLS and SASL together) has failed.',
  ),
  compression: z
    .enum(COMPRESSIONS)
    .refine((name) => name === 'none' || compressor(name) !== undefined, 'needs Node 22.15 or newer')
    .default('none')
    .describe('How produced records are compressed: none, gzip or zstd.'),
  bodyLimit: z
    .int()
    .min(1_024)
    .max(512 * 1024 * 1024)
    .default(10 * 1024 * 1024)
    .describe('Largest request body in bytes.'),
  idempotencyWindow: idempotencyWindow(),
  timeoutMs: milliseconds(10_000, 100).describe(
    'Deadline of a request in ms; fetch and consume get 10 s beyond the time they ask for instead.',
  ),
  maxWaitMs: milliseconds(60_000).describe(
    'Longest time in ms that fetch and consume wait; more is cut to it.',
  ),
  replyRecords: z.int().min(1).max(100_000).default(500).describe('Most records that one consume returns.'),
  replyBytes: z
    .int()
    .min(1_024)
    .max(64 * 1024 * 1024)
    .default(1024 * 1024)
    .describe(
      'Bytes of records after which a fetch or consume returns; soft, a single record may be larger.',
    ),
  unpackedBytes: z
    .int()
    .min(1024 * 1024)
    .max(512 * 1024 * 1024)
    .default(32 * 1024 * 1024)
    .describe(
      'Largest size in bytes of a compressed batch of records when it is unpacked; a larger one is 502 and not read.',
    ),
  idleTimeoutMs: milliseconds(300_000, 100).describe(
    'A consumer instance that nobody asked for so long commits, leaves its group and is closed.',
  ),
  sessionTimeoutMs: milliseconds(10_000, 6_000).describe(
    'How long the partitions of a crashed gateway stay with it; a request can choose another.',
  ),
  redeliver: z
    .boolean()
    .default(false)
    .describe(
      'Whether a consumer instance without automatic commits is given again, with each consume, what it has not committed. The header Broker-Redeliver of a request wins.',
    ),
});

const peers = z
  .strictObject({
    listen: hostAndPort()
      .nullable()
      .default(null)
      .describe(
        'Address (host:port) where this gateway listens for the other gateways; null: it is the only one.',
      ),
    addresses: z
      .array(hostAndPort())
      .default([])
      .describe('Such addresses of the gateways; this one may be among them.'),
    dns: hostAndPort()
      .nullable()
      .default(null)
      .describe('name:port; every address of the name is taken for a gateway.'),
    secret: secret('PORTICO_BROKER_PEERS_SECRET')
      .nullable()
      .default(null)
      .describe('What the gateways prove to each other that they belong together with.'),
  })
  .refine(({ listen, secret: shared }) => listen === null || shared !== null, {
    error: 'gateways that listen for others need a secret',
  });

export const brokerSettings = z.strictObject({
  enabled: serviceSwitch(),
  missing: missingReason('PORTICO_BROKER_MISSING'),
  peers: peers.prefault({}).describe('Several gateways in front of the same Kafka.'),
  clusters: z.array(cluster).prefault([{}]).describe('Kafka clusters, each served at a path of its own.'),
});

export type BrokerSettings = z.output<typeof brokerSettings>;
export type PeerSettings = z.output<typeof peers>;
export type UserSettings = z.output<typeof user>;
export type ClusterSettings = z.output<typeof cluster>;
