import { HttpError } from '../../../http/errors.js';
import { IdleRegistry } from '../../../lib/idle-registry.js';
import type { Logger } from '../../../lib/logger.js';
import type { ClusterCounters } from '../cluster-counters.js';
import type { Cluster } from '../kafka/cluster.js';
import type { LogReader } from '../read/log-reader.js';
import type { ReplyForm } from '../records/messages-json.js';
import type { ConsumeWishes } from '../schemas.js';
import { type Consumed, ConsumerInstance } from './consumer-instance.js';
import type { Coordinators } from './coordinators.js';
import { GroupMember } from './group-member.js';
import type { CommitRequest } from './group-offsets.js';
import type { InstanceShares } from './instance-shares.js';
import { type InstanceName, type InstanceState, instanceKey, type Wait } from './instance-state.js';
import { chosenBy } from './member-options.js';
import { checkCommitted } from './start-offsets.js';

/** After so long a join has reached the broker, in ms. */
const HEARTBEAT_OTHERS_MS = 60;

export interface ConsumerInstancesOptions {
  readonly cluster: Cluster;
  readonly coordinators: Coordinators;
  readonly reader: LogReader;
  readonly idleTimeoutMs: number;
  readonly sessionTimeoutMs: number;
  /** Whether instances without automatic commits are given again what they have not committed. */
  readonly redeliver: boolean;
  /** The most of any reply. */
  readonly limits: ReplyForm;
  readonly shares: InstanceShares;
  /** Instances that other gateways have of an owner's. */
  readonly countElsewhere: (owner: string) => number;
  readonly counters: ClusterCounters;
  readonly log: Logger;
  readonly now: () => number;
}

/** Every consumer instance of one cluster: made by its first consume, closed when idle, asked to or at the stop. */
export class ConsumerInstances {
  private readonly registry: IdleRegistry<ConsumerInstance>;

  constructor(private readonly options: ConsumerInstancesOptions) {
    const { log, idleTimeoutMs } = options;
    this.registry = new IdleRegistry({
      idleMs: idleTimeoutMs,
      close: async (instance, reason) => {
        await instance.close();
        log.info({ group: instance.group, instance: instance.name, reason }, 'consumer instance closed');
      },
    });
  }

  /**
   * Records for the instance, which is made as `wishes` say when it does not exist.
   * @param beforeMaking ends when no other gateway has it
   * @throws HttpError 404 unknown topic, 400 no offset to begin at, 409 too many instances, 503 Kafka away
   */
  async consume(
    name: InstanceName,
    topics: readonly string[],
    wishes: ConsumeWishes,
    wait: Wait,
    beforeMaking: () => Promise<unknown>,
  ): Promise<Consumed> {
    await this.options.cluster.existing(topics);
    const hold = await this.registry.hold(instanceKey(name), () =>
      this.create(name, topics, wishes, beforeMaking),
    );
    try {
      const { 'broker-redeliver': redeliver, 'broker-acknowledge': acknowledged } = wishes;
      const form = formOf(wishes, this.options.limits);
      const consumed = await hold.value.consume({ topics, form, redeliver, acknowledged }, wait.signal);
      // nothing may mean that Kafka is away, and the caller is to know
      if (consumed.count === 0) await this.checkBackend(consumed);
      return {
        ...consumed,
        settle: (arrived) => {
          consumed.settle(arrived);
          if (arrived) this.options.counters.consumed += consumed.count;
          hold.release();
        },
      };
    } catch (error) {
      hold.release();
      throw error;
    }
  }

  /** As `ConsumerInstance.commit`. @throws HttpError 404 when there is no such instance */
  async commit(
    name: InstanceName,
    { positions, acknowledged }: CommitRequest,
    deadline: AbortSignal,
  ): Promise<void> {
    const hold = await this.registry.hold(instanceKey(name), () => Promise.reject(this.unknown(name)));
    try {
      await hold.value.commit(positions, acknowledged, deadline);
    } finally {
      hold.release();
    }
  }

  /** @throws HttpError 404 when there is no such instance */
  async remove(name: InstanceName): Promise<void> {
    if (!(await this.registry.close(instanceKey(name)))) throw this.unknown(name);
  }

  /** @param delivery settled as arrived, and not read by the client */
  takeBack(name: InstanceName, delivery: string): void {
    this.registry.made(instanceKey(name))?.takeBack(delivery);
  }

  /** Closes it for another gateway, if it is here; one that is only being made is not waited for. */
  async yield(name: InstanceName): Promise<void> {
    const key = instanceKey(name);
    if (this.registry.made(key) !== undefined) await this.registry.close(key);
    else await this.registry.closed(key);
  }

  /** How many there are or are being made. */
  get count(): number {
    return this.registry.size;
  }

  /** The same by owner. */
  countsByOwner(): Record<string, number> {
    return this.options.shares.countsOf(this.registry.keys());
  }

  /** By group, as far as they are known. */
  lags(): Map<string, number> {
    const lags = new Map<string, number>();
    for (const { group, lag } of this.registry.values()) lags.set(group, (lags.get(group) ?? 0) + lag);
    return lags;
  }

  states(): InstanceState[] {
    return this.registry.values().map(({ group, name, assignment }) => ({
      group,
      name,
      topics: [...assignment].map(([topic, partitions]) => ({ topic, partitions: [...partitions] })),
    }));
  }

  /** Closes those for which `isOwn` says no: they belong to another gateway by now. */
  release(isOwn: (name: InstanceName) => boolean): void {
    for (const { group, name: instance } of this.registry.values()) {
      const name = { group, instance };
      if (!isOwn(name)) void this.registry.close(instanceKey(name));
    }
  }

  close(): Promise<void> {
    return this.registry.closeAll();
  }

  private async checkBackend(consumed: Consumed): Promise<void> {
    await this.options.cluster.check().catch((error: unknown) => {
      consumed.settle(false);
      throw error;
    });
  }

  private async create(
    { group, instance }: InstanceName,
    topics: readonly string[],
    headers: ConsumeWishes,
    beforeMaking: () => Promise<unknown>,
  ): Promise<ConsumerInstance> {
    await Promise.all([this.checkLimit(group), beforeMaking()]);
    if (headers['broker-auto-offset-reset'] === 'none') {
      const { cluster, coordinators } = this.options;
      await checkCommitted(cluster, coordinators, group, topics);
    }
    this.options.log.info({ group, instance }, 'consumer instance created');
    const createMember = (wanted: readonly string[]) => this.createMember(group, instance, wanted, headers);
    // with automatic commits nobody says by itself what has arrived
    const redeliver = this.options.redeliver && !headers['broker-enable-auto-commit'];
    return new ConsumerInstance({ group, name: instance, topics, redeliver, createMember });
  }

  private createMember(
    group: string,
    instance: string,
    topics: readonly string[],
    headers: ConsumeWishes,
  ): GroupMember {
    return new GroupMember({
      ...this.options,
      group,
      instance,
      topics,
      ...chosenBy(headers, this.options.sessionTimeoutMs),
      onJoining: () => this.heartbeatOthers(group, instance),
    });
  }

  /** A join is answered when all members have joined again, and they learn of it by their heartbeats. */
  private heartbeatOthers(group: string, instance: string): void {
    const timer = setTimeout(() => {
      for (const other of this.registry.values())
        if (other.group === group && other.name !== instance) other.heartbeatNow();
    }, HEARTBEAT_OTHERS_MS);
    timer.unref();
  }

  /** There is no use in more instances than partitions: the contract's limit. */
  private async checkLimit(group: string): Promise<void> {
    const { cluster, countElsewhere, shares } = this.options;
    const owner = shares.ownerOf(group);
    const topics = await cluster.allTopics();
    shares.check(owner, (this.countsByOwner()[owner] ?? 0) + countElsewhere(owner), topics);
  }

  private unknown({ group, instance }: InstanceName): HttpError {
    const idle = `it was never used, was deleted, or nobody consumed for ${this.options.idleTimeoutMs} ms`;
    return new HttpError('not_found', `There is no instance ${instance} in group ${group}: ${idle}.`);
  }
}

/** What a request asks for, as far as it is allowed. */
function formOf({ limit, maxBytes, 'broker-encoding': isBase64 }: ConsumeWishes, most: ReplyForm): ReplyForm {
  return {
    maxRecords: Math.min(limit ?? most.maxRecords, most.maxRecords),
    maxBytes: Math.min(maxBytes ?? most.maxBytes, most.maxBytes),
    isBase64,
  };
}
