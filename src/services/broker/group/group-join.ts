import { checkCode } from '../errors.js';
import type { KafkaConnection } from '../kafka/kafka-connection.js';
import type { Assignment, GroupProtocol } from './group-protocol.js';

export interface JoinOptions {
  readonly group: string;
  /** Kafka's static member id. */
  readonly instanceId: string;
  /** Empty where it is to be given one. */
  readonly memberId: string;
  readonly protocol: GroupProtocol;
  readonly sessionTimeoutMs: number;
}

export interface Joined {
  readonly memberId: string;
  readonly generation: number;
  readonly assignment: Assignment;
}

interface JoinReply {
  readonly errorCode: number;
  readonly generationId: number;
  readonly leaderId: string;
  readonly memberId: string;
  readonly members: readonly { memberId: string; memberMetadata: Buffer }[];
}

interface SyncReply {
  readonly errorCode: number;
  readonly memberAssignment: Buffer;
}

/** How long the broker waits for members that are slow to join again, in ms. */
const REBALANCE_MS = 20_000;
const GRACE_MS = 3_000;

/**
 * Both steps of joining, on a connection that the broker may keep busy until every member has come.
 * @throws HttpError for Kafka's refusals, kafkajs' connection errors, KafkaTimeout
 */
export async function joinGroup(connection: KafkaConnection, options: JoinOptions): Promise<Joined> {
  const { group, instanceId, protocol, sessionTimeoutMs } = options;
  const joined = await connection.request<JoinReply>(
    'JoinGroup',
    {
      groupId: group,
      sessionTimeout: sessionTimeoutMs,
      rebalanceTimeout: REBALANCE_MS,
      memberId: options.memberId,
      groupInstanceId: instanceId,
      protocolType: 'consumer',
      groupProtocols: [{ name: protocol.name, metadata: await protocol.metadata() }],
    },
    REBALANCE_MS + sessionTimeoutMs + GRACE_MS,
  );
  checkCode(joined.errorCode, group);
  const { memberId, generationId } = joined;
  const synced = await connection.request<SyncReply>(
    'SyncGroup',
    {
      groupId: group,
      generationId,
      memberId,
      groupInstanceId: instanceId,
      // the leader deals out, whom the broker has chosen
      groupAssignment: joined.leaderId === memberId ? await protocol.assign(joined.members) : [],
    },
    REBALANCE_MS + GRACE_MS,
  );
  checkCode(synced.errorCode, group);
  return { memberId, generation: generationId, assignment: protocol.decode(synced.memberAssignment) };
}
