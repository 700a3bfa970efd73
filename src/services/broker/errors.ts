import { types } from 'node:util';
import { z } from 'zod';
import { type ErrorCode, HttpError } from '../../http/errors.js';
import { KafkaTimeout } from './kafka/kafka-connection.js';
import { errorType } from './kafka/kafkajs-internals.js';
import { SASL_REFUSED } from './kafka/sasl.js';

/** The body of every error of this contract. */
export const errorSchema = z.object({ error: z.string(), status: z.int() });

export function formatError(error: HttpError): z.input<typeof errorSchema> {
  return { error: error.message, status: error.status };
}

/** What Kafka's error types mean to a caller. Types that are not here are the gateway's or the cluster's own trouble (502). */
const MEANING: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  UNKNOWN_TOPIC_OR_PARTITION: ['not_found', 'The topic or partition does not exist.'],
  INVALID_TOPIC_EXCEPTION: ['invalid_request', 'The topic name is not valid.'],
  OFFSET_OUT_OF_RANGE: ['invalid_request', 'The offset is outside of the log.'],
  INVALID_TIMESTAMP: ['invalid_request', 'The timestamp is outside of what the topic accepts.'],
  INVALID_RECORD: ['invalid_request', 'The topic does not accept this record.'],
  TOPIC_ALREADY_EXISTS: ['conflict', 'The topic is there already.'],
  INVALID_PARTITIONS: [
    'invalid_request',
    'The number of partitions is not possible; of a topic that is there it can only grow.',
  ],
  INVALID_REPLICATION_FACTOR: [
    'invalid_request',
    'The replication factor is not possible: it is at least 1, and at most the number of brokers.',
  ],
  INVALID_CONFIG: ['invalid_request', 'Kafka does not take this configuration of the topic.'],
  POLICY_VIOLATION: ['forbidden', 'A policy of the cluster forbids this.'],
  TOPIC_DELETION_DISABLED: ['forbidden', 'The cluster does not let topics be deleted.'],
  INVALID_GROUP_ID: ['invalid_request', 'The group name is not valid.'],
  INVALID_SESSION_TIMEOUT: ['invalid_request', 'The session timeout is outside of what the broker allows.'],
  TOPIC_AUTHORIZATION_FAILED: ['forbidden', 'The gateway may not use this topic.'],
  GROUP_AUTHORIZATION_FAILED: ['forbidden', 'The gateway may not use this consumer group.'],
  CLUSTER_AUTHORIZATION_FAILED: ['forbidden', 'The gateway may not do this on the cluster.'],
  INCONSISTENT_GROUP_PROTOCOL: ['conflict', 'The group is in use by consumers of another kind.'],
  MESSAGE_TOO_LARGE: ['payload_too_large', 'The record is larger than the topic accepts.'],
  RECORD_LIST_TOO_LARGE: ['payload_too_large', 'The record is larger than the topic accepts.'],
  NOT_ENOUGH_REPLICAS: ['backend_unavailable', 'Too few replicas are in sync.'],
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: [
    'backend_unavailable',
    'The record was written, but too few replicas are in sync to acknowledge it.',
  ],
  LEADER_NOT_AVAILABLE: ['backend_unavailable', 'The partition has no leader at present.'],
  NOT_LEADER_FOR_PARTITION: ['backend_unavailable', 'The leader of the partition is changing.'],
  FENCED_LEADER_EPOCH: ['backend_unavailable', 'The leader of the partition is changing.'],
  GROUP_COORDINATOR_NOT_AVAILABLE: ['backend_unavailable', 'The group has no coordinator at present.'],
  NOT_COORDINATOR_FOR_GROUP: ['backend_unavailable', 'The coordinator of the group is changing.'],
  GROUP_LOAD_IN_PROGRESS: ['backend_unavailable', 'The coordinator of the group is loading.'],
  REBALANCE_IN_PROGRESS: ['backend_unavailable', 'The group is rebalancing.'],
  ILLEGAL_GENERATION: ['backend_unavailable', 'The group is rebalancing.'],
  UNKNOWN_MEMBER_ID: ['backend_unavailable', 'The group is rebalancing.'],
  GROUP_MAX_SIZE_REACHED: ['conflict', 'The group has as many members as the broker allows.'],
  FENCED_INSTANCE_ID: ['conflict', 'Another gateway has taken this instance over.'],
  REQUEST_TIMED_OUT: ['timeout', 'The replicas did not acknowledge in time.'],
};

const DISCONNECTED = new Set([
  'KafkaJSConnectionError',
  'KafkaJSConnectionClosedError',
  'KafkaJSBrokerNotFound',
  'KafkaJSRequestTimeoutError',
  'KafkaJSNoBrokerAvailableError',
  'KafkaJSLockTimeout',
]);

/** The broker that was asked is not, or no longer, the partition's leader. */
export const STALE_LEADER: ReadonlySet<string> = new Set([
  'NOT_LEADER_FOR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_LEADER_EPOCH',
]);

/** Kafka's own refusal of one partition's part of a request. @param about what was refused, such as `topic orders, partition 3` */
export function kafkaRefusal(type: string, about: string): HttpError {
  const [code, text] = MEANING[type] ?? ['backend_error', 'Kafka refused the request.'];
  return new HttpError(code, `${text} (${about})`, { cause: Object.assign(new Error(type), { type }) });
}

/** Error code of one partition's part of a reply, as an error for the caller. */
export function kafkaCodeRefusal(code: number, about: string): HttpError {
  return kafkaRefusal(errorType(code), about);
}

/** @throws HttpError for any error code but 0 of a request about a consumer group */
export function checkCode(code: number, group: string): void {
  if (code !== 0) throw kafkaCodeRefusal(code, `group ${group}`);
}

/** Whatever talking to Kafka threw, as what the caller is told; the original is the cause. */
export function translateError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof KafkaTimeout) return new HttpError('timeout', undefined, { cause: error });
  for (const link of causes(error)) {
    if (DISCONNECTED.has(link.name)) return unavailable(error);
    // kafkajs' retrier wraps an error without its type: the first one along the chain is Kafka's
    const meaning = link.type === undefined ? undefined : MEANING[link.type];
    if (meaning !== undefined) return new HttpError(meaning[0], meaning[1], { cause: error });
    if (refusalOf(link) !== undefined) return unavailable(error);
  }
  return new HttpError('backend_error', undefined, { cause: error });
}

export function unavailable(cause: unknown): HttpError {
  const text =
    refusalOf(cause) === undefined
      ? 'Kafka cannot be reached.'
      : 'Kafka and the gateway do not trust each other.';
  return new HttpError('backend_unavailable', text, { cause });
}

/** Codes of OpenSSL and Node for certificates and handshakes. */
const TLS_CODE = /CERT|SIGNATURE|ISSUER|_CA$|HOSTNAME_MISMATCH|^ERR_(TLS|SSL)_|^EPROTO$/;

/** Why a broker that can be reached is of no use, for operators, with the key to look at; `undefined` for any other trouble. */
export function refusalOf(error: unknown): string | undefined {
  for (const { name, message, code } of causes(error)) {
    if (name === 'OutboundError') return `${message} (broker.clusters[].sasl.oauth)`;
    if (name === SASL_REFUSED)
      return "Kafka refuses the gateway's SASL mechanism, user, password or token (broker.clusters[].sasl)";
    if (code !== undefined && TLS_CODE.test(code))
      return `TLS with Kafka fails: ${code} (broker.clusters[].tls)`;
  }
  return undefined;
}

/** Kafka's error type, wherever along the causes it stands. */
export function kafkaType(error: unknown): string | undefined {
  return causes(error).find((link) => link.type !== undefined)?.type;
}

function causes(error: unknown): (Error & { type?: string; code?: string })[] {
  const chain: (Error & { type?: string; code?: string })[] = [];
  for (let link = error; types.isNativeError(link) && chain.length < 6; link = link.cause) chain.push(link);
  return chain;
}

/** Whether what failed so wrote no record. Of several, some may be written although another was refused. */
export function changedNothing({ code, hasDoneNothing }: HttpError): boolean {
  return hasDoneNothing || code === 'forbidden' || code === 'overloaded' || code === 'stopping';
}
