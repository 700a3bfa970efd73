import { setMaxListeners } from 'node:events';
import { HttpError } from '../../../http/errors.js';
import { deadlineOf } from '../../../lib/deadline.js';
import { Mutex } from '../../../lib/mutex.js';
import { kafkaType } from '../errors.js';
import { pause, untilAborted } from '../kafka/waits.js';
import { NO_MESSAGES, type ReplyForm } from '../records/messages-json.js';
import { Deliveries, unknownDelivery } from './deliveries.js';
import type { Delivery } from './delivery.js';
import type { GroupMember } from './group-member.js';
import type { TopicPartitionOffset } from './group-offsets.js';

/** A reply still being written may hold up a close for so long, in ms: it is committed if it arrives meanwhile. */
const LAST_TURN_MS = 2_000;
/** A commit of what was delivered waits so long for the word that a reply on its way went out, in ms; without it that is left out. */
const SETTLED_MS = 1_000;
/** Pause before a commit that met a rebalance is tried again, in ms. */
const REBALANCE_PAUSE_MS = 100;
const REBALANCING = new Set(['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']);

/** What one consume came to. Its caller says how the reply fared, once; until then no other consume has its turn. */
export interface Consumed {
  /** As JSON, an array. */
  readonly messages: Buffer;
  readonly count: number;
  /** Whether the instance has its partitions: an empty reply while joining does not mean an empty topic. */
  readonly isJoined: boolean;
  settle(arrived: boolean): void;
  /** By which it is confirmed, and taken back when it was settled; `undefined` where there is nothing. */
  readonly delivery?: string | undefined;
}

/** What a consume asks for. */
export interface Pull {
  readonly topics: readonly string[];
  readonly form: ReplyForm;
  /** Whether its records come again unless they are confirmed; `undefined`: as the instance does it. */
  readonly redeliver: boolean | undefined;
  /** Delivery that the client has read. */
  readonly acknowledged: string | undefined;
}

export interface ConsumerInstanceOptions {
  readonly group: string;
  readonly name: string;
  readonly topics: readonly string[];
  /** Whether records come again unless they are confirmed, where a consume does not say. */
  readonly redeliver: boolean;
  /** Begins to join the group at once. */
  readonly createMember: (topics: readonly string[]) => GroupMember;
}

/** A consumer of a group under the name that a client gave it: pulled from by one request at a time. */
export class ConsumerInstance {
  private topics: readonly string[];
  private member: GroupMember;
  private readonly mutex = new Mutex();
  private readonly closing = new AbortController();
  private readonly deliveries = new Deliveries();

  constructor(private readonly options: ConsumerInstanceOptions) {
    // every waiting request listens to it
    setMaxListeners(0, this.closing.signal);
    this.topics = sorted(options.topics);
    this.member = options.createMember(this.topics);
  }

  get group(): string {
    return this.options.group;
  }

  get name(): string {
    return this.options.name;
  }

  /** Another member of the group joins: this one need not wait for its heartbeat. */
  heartbeatNow(): void {
    this.member.heartbeatNow();
  }

  /** Records that it has not been given yet, as far as is known. */
  get lag(): number {
    return this.member.lag;
  }

  get assignment(): ReadonlyMap<string, readonly number[]> {
    return this.member.assignment;
  }

  /**
   * Records of the topics, as soon as there are any; none when `deadline` passes, the client goes or the instance is closed.
   * Other topics than before replace those: what was delivered is committed (where commits are automatic) and the group
   * joined anew.
   * @throws HttpError when the consumer cannot join or dies
   */
  async consume(pull: Pull, deadline: AbortSignal): Promise<Consumed> {
    if (pull.acknowledged !== undefined) this.deliveries.confirm(pull.acknowledged);
    const until = deadlineOf(undefined, deadline, this.closing.signal);
    try {
      const release = await this.mutex.acquire(until.signal);
      if (release === undefined) return this.nothing(() => {});
      return await this.takeLocked(pull, release, until.signal);
    } finally {
      until.release();
    }
  }

  /**
   * Commits `positions` as they are, or what was last delivered when there are none: up to the delivery `acknowledged`
   * where one is given.
   * @throws HttpError 409 for partitions of others and deliveries that are not known, 503 when the group does not come
   * to rest in time
   */
  async commit(
    positions: readonly TopicPartitionOffset[],
    acknowledged: string | undefined,
    deadline: AbortSignal,
  ): Promise<void> {
    if (acknowledged !== undefined && !this.deliveries.confirm(acknowledged)) throw unknownDelivery();
    if (acknowledged === undefined && positions.length === 0) {
      await this.deliveries.settled(SETTLED_MS);
      this.deliveries.confirmLast();
    }
    const until = deadlineOf(undefined, deadline, this.closing.signal);
    try {
      while (!(await this.tryCommit(positions, until.signal)));
    } finally {
      until.release();
    }
  }

  /** The client has not read what was settled as arrived: it is delivered again. */
  takeBack(delivery: string): void {
    this.deliveries.takeBack(delivery);
  }

  /** Wakes whoever waits, commits, leaves the group. */
  async close(): Promise<void> {
    this.closing.abort();
    const patience = deadlineOf(LAST_TURN_MS);
    await this.mutex.acquire(patience.signal);
    patience.release();
    await this.member.close();
  }

  /** False when the group rebalanced meanwhile: the same positions may be committed as soon as it is joined again. */
  private async tryCommit(positions: readonly TopicPartitionOffset[], until: AbortSignal): Promise<boolean> {
    const { member } = this;
    while (member.state === 'joining' && !until.aborted) await member.change(until);
    if (member.state !== 'joined') throw notInGroup(member.failure);
    const foreign = positions.find((position) => !member.isAssigned(position));
    if (foreign !== undefined) {
      const { topic, partition } = foreign;
      throw new HttpError('conflict', `Partition ${partition} of ${topic} is not assigned to this instance.`);
    }
    try {
      await (positions.length > 0 ? member.commits.commit(positions) : member.commits.commitDelivered());
      this.deliveries.confirmBefore(positions);
      return true;
    } catch (error) {
      if (!REBALANCING.has(kafkaType(error) ?? '') || until.aborted) throw error;
      member.heartbeatNow();
      await untilAborted(pause(REBALANCE_PAUSE_MS), until);
      return false;
    }
  }

  private async takeLocked(
    { topics, form, redeliver = this.options.redeliver }: Pull,
    release: () => void,
    until: AbortSignal,
  ): Promise<Consumed> {
    try {
      this.deliveries.putBackHeld();
      const replaced = this.renewed(sorted(topics));
      await untilAborted(replaced, until);
      while (!until.aborted) {
        const delivery = await this.member.take(form);
        if (delivery !== undefined) return this.delivered(delivery, redeliver, release);
        if (this.member.failure !== undefined) throw this.member.failure;
        await this.member.more(until);
      }
      // a member that is still being replaced keeps the turn: nobody may take from either
      return this.nothing(() => void replaced.then(release, release));
    } catch (error) {
      release();
      throw error;
    }
  }

  private delivered(delivery: Delivery, mustConfirm: boolean, release: () => void): Consumed {
    const { messages, count } = delivery;
    const { id, settle } = this.deliveries.begin(delivery, mustConfirm);
    const settled = (isSent: boolean) => {
      settle(isSent);
      release();
    };
    return { messages, count, isJoined: true, settle: settled, delivery: id };
  }

  private nothing(settle: () => void): Consumed {
    return { messages: NO_MESSAGES, count: 0, isJoined: this.member.state === 'joined', settle };
  }

  /** Makes the member one that lives and reads `topics`; the next begins only when the one before has committed. */
  private async renewed(topics: readonly string[]): Promise<void> {
    const isSame =
      topics.length === this.topics.length && topics.every((topic, i) => topic === this.topics[i]);
    if (isSame && !this.member.isLost) return this.member.noticeTopics();
    await this.member.close();
    if (this.closing.signal.aborted) return;
    this.topics = topics;
    this.member = this.options.createMember(topics);
  }
}

function sorted(topics: readonly string[]): string[] {
  return [...new Set(topics)].sort();
}

function notInGroup(cause: unknown): HttpError {
  return new HttpError('backend_unavailable', 'The instance is not in its group at present.', { cause });
}
