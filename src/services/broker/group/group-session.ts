import type { HttpError } from '../../../http/errors.js';
import type { Logger } from '../../../lib/logger.js';
import { checkCode, kafkaType, translateError } from '../errors.js';
import type { Cluster } from '../kafka/cluster.js';
import type { KafkaConnection } from '../kafka/kafka-connection.js';
import { errorType } from '../kafka/kafkajs-internals.js';
import { Sleep } from '../kafka/waits.js';
import { COORDINATOR_NOT_READY, type Coordinators } from './coordinators.js';
import { joinGroup } from './group-join.js';
import type { Membership } from './group-offsets.js';
import { type Assignment, type GroupProtocol, staticMemberId } from './group-protocol.js';

export interface GroupSessionOptions {
  readonly cluster: Cluster;
  readonly coordinators: Coordinators;
  readonly group: string;
  readonly instance: string;
  readonly protocol: GroupProtocol;
  readonly sessionTimeoutMs: number;
  /** May take its time: heartbeats begin when it has ended. @param isContinuous nobody else can have had the partitions that stayed */
  readonly onJoined: (assignment: Assignment, isContinuous: boolean) => Promise<void>;
  /** The group is joined anew when it has ended. @param canCommit this member is still known, so what was delivered can be committed */
  readonly onRebalance: (canCommit: boolean) => Promise<void>;
  readonly onDeath: (error: HttpError) => void;
  readonly log: Logger;
  readonly now: () => number;
}

/** Members notice a rebalance by their next heartbeat. In ms. */
const HEARTBEAT_MS = 1_500;
/** Somebody else has come with the same static member id. */
const FENCED = 'FENCED_INSTANCE_ID';
const QUICK_MS = 3_000;
/** Pause before something that failed is tried again, in ms. */
const RETRY_MS = 250;

/**
 * One membership of a consumer group, over Kafka's protocol: joins, keeps itself alive, joins again after a rebalance,
 * leaves. It has no connection of its own but while it joins (the broker answers a join when all have joined).
 *
 * The instance's name is Kafka's static member id (KIP-345): who comes with the same name takes the place over at once,
 * without a rebalance and without waiting for a session to expire, and the one before is told so.
 */
export class GroupSession {
  private generation = -1;
  private member = '';
  private readonly instanceId: string;
  private readonly sleeping = new Sleep();
  private readonly ended: Promise<void>;
  private joining: KafkaConnection | undefined;
  private lastContact: number;
  private closed = false;
  private mustRejoin = false;

  constructor(private readonly options: GroupSessionOptions) {
    this.instanceId = staticMemberId(options.instance);
    this.lastContact = options.now();
    this.ended = this.run();
  }

  get membership(): Membership {
    return { group: this.options.group, generation: this.generation, member: this.member };
  }

  /** Asks the broker now whether the group rebalances. */
  heartbeatNow(): void {
    this.sleeping.end();
  }

  /** What the member reads has changed, such as the number of partitions. */
  rejoin(): void {
    this.mustRejoin = true;
    this.sleeping.end();
  }

  /** Leaves the group, if it can be told. */
  async leave(): Promise<void> {
    const isDead = this.closed;
    this.closed = true;
    this.sleeping.end();
    // a join that is cut off may make the member all the same: the static id finds it then
    const wasJoining = this.joining !== undefined;
    this.joining?.close(new Error('closed while joining'));
    await this.ended;
    if (!isDead && (this.member !== '' || wasJoining)) await this.sendLeave();
  }

  private async sendLeave(): Promise<void> {
    const { group, cluster, coordinators } = this.options;
    const args = { groupId: group, memberId: this.member, groupInstanceId: this.instanceId };
    const node = await coordinators.find(group).catch(() => undefined);
    if (node === undefined) return;
    await cluster.request(node, 'control', 'LeaveGroup', args, QUICK_MS).catch(() => {});
  }

  private async run(): Promise<void> {
    const { now, sessionTimeoutMs, onDeath, onRebalance, log, group, instance } = this.options;
    while (!this.closed) {
      try {
        await this.join();
        if (this.closed) return;
        await this.stayUntilRebalance();
      } catch (error) {
        if (this.closed) return;
        const translated = translateError(error);
        const isHopeless = translated.status < 500 || now() - this.lastContact > sessionTimeoutMs;
        log.debug({ err: error, group, instance, isHopeless }, 'consumer instance lost its group');
        if (isHopeless) {
          this.closed = true;
          onDeath(translated);
          if (this.member !== '' && kafkaType(error) !== FENCED) await this.sendLeave();
          return;
        }
        this.forget(error);
        await onRebalance(false);
        await this.sleeping.sleep(RETRY_MS);
      }
    }
  }

  private async join(): Promise<void> {
    const { cluster, coordinators, group, protocol, sessionTimeoutMs, onJoined, now } = this.options;
    const node = await coordinators.find(group);
    const before = this.generation;
    const connection = await cluster.openOwn(node);
    this.joining = connection;
    try {
      if (this.closed) return;
      this.mustRejoin = false;
      const joined = await joinGroup(connection, {
        group,
        instanceId: this.instanceId,
        memberId: this.member,
        protocol,
        sessionTimeoutMs,
      });
      this.member = joined.memberId;
      this.generation = joined.generation;
      this.lastContact = now();
      await onJoined(joined.assignment, before >= 0 && this.generation <= before + 1);
    } finally {
      this.joining = undefined;
      connection.close();
    }
  }

  /** Heartbeats; returns when the group is to be joined again. */
  private async stayUntilRebalance(): Promise<void> {
    const { cluster, coordinators, group, onRebalance, sessionTimeoutMs } = this.options;
    const interval = Math.min(HEARTBEAT_MS, Math.floor(sessionTimeoutMs / 4));
    while (!this.closed) {
      if (!this.mustRejoin) await this.sleeping.sleep(interval);
      if (this.closed) return;
      if (this.mustRejoin) return onRebalance(true);
      try {
        const node = await coordinators.find(group);
        const { errorCode } = await cluster.request<{ errorCode: number }>(
          node,
          'control',
          'Heartbeat',
          { ...this.identity, groupGenerationId: this.generation },
          QUICK_MS,
        );
        if (errorType(errorCode) === 'REBALANCE_IN_PROGRESS') return onRebalance(true);
        checkCode(errorCode, group);
        this.lastContact = this.options.now();
      } catch (error) {
        if (!this.canWait(error)) throw error;
        this.forget(error);
      }
    }
  }

  private get identity() {
    return {
      groupId: this.options.group,
      generationId: this.generation,
      memberId: this.member,
      groupInstanceId: this.instanceId,
    };
  }

  /** The broker is away for a moment: the membership outlives that. */
  private canWait(error: unknown): boolean {
    const { now, sessionTimeoutMs } = this.options;
    if (now() - this.lastContact > sessionTimeoutMs) return false;
    const type = kafkaType(error);
    return type === undefined || COORDINATOR_NOT_READY.has(type);
  }

  /** What is known of the group is asked for anew where `error` says that it is no longer so. */
  private forget(error: unknown): void {
    const type = kafkaType(error);
    if (type === 'UNKNOWN_MEMBER_ID') {
      this.member = '';
      this.generation = -1;
    }
    if (type === undefined || COORDINATOR_NOT_READY.has(type))
      this.options.coordinators.forget(this.options.group);
  }
}
