import { HttpError } from '../../http/errors.js';
import { deadlineOf } from '../../lib/deadline.js';
import { kafkaType, translateError } from './errors.js';
import type { Delivery, GroupMember } from './group-member.js';
import type { TopicPartitionOffset } from './offset-commits.js';
import type { Message } from './schemas.js';
import { Turns } from './turns.js';
import { pause, untilAborted } from './waits.js';

/** A reply still being written may hold up a close for so long, in ms: it is committed if it arrives meanwhile. */
const LAST_TURN_MS = 2_000;
/** Pause before a member is made again because the group's coordinator was not ready, in ms. */
const COORDINATOR_PAUSE_MS = 200;
const COORDINATOR_NOT_READY = new Set([
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'GROUP_LOAD_IN_PROGRESS',
  'NOT_COORDINATOR_FOR_GROUP',
]);

/** What one consume came to. Its caller says how the reply fared, once; until then no other consume has its turn. */
export interface Consumed {
  readonly messages: Message[];
  /** Whether the instance has its partitions: an empty reply while joining does not mean an empty topic. */
  readonly isJoined: boolean;
  settle(arrived: boolean): void;
}

export interface ConsumerInstanceOptions {
  readonly group: string;
  readonly name: string;
  readonly topics: readonly string[];
  readonly maxRecords: number;
  readonly maxBytes: number;
  /** Begins to join the group at once. */
  readonly createMember: (topics: readonly string[]) => GroupMember;
}

/** A consumer of a group under the name that a client gave it: pulled from by one request at a time. */
export class ConsumerInstance {
  private topics: readonly string[];
  private member: GroupMember;
  private readonly turns = new Turns();
  private readonly closing = new AbortController();

  constructor(private readonly options: ConsumerInstanceOptions) {
    this.topics = sorted(options.topics);
    this.member = options.createMember(this.topics);
  }

  get group(): string {
    return this.options.group;
  }

  get name(): string {
    return this.options.name;
  }

  get assignment(): ReadonlyMap<string, readonly number[]> {
    return this.member.assignment;
  }

  /**
   * Records of `topics`, as soon as there are any; none when `deadline` passes, the client goes or the instance is closed.
   * Other topics than before replace those: what was delivered is committed (where commits are automatic) and the group
   * joined anew.
   * @throws HttpError when the consumer cannot join or dies
   */
  async consume(topics: readonly string[], deadline: AbortSignal): Promise<Consumed> {
    const until = deadlineOf(undefined, deadline, this.closing.signal);
    try {
      const endTurn = await this.turns.take(until.signal);
      if (endTurn === undefined) return this.nothing(() => {});
      return await this.takeInTurn(topics, endTurn, until.signal);
    } finally {
      until.release();
    }
  }

  /**
   * Commits `positions` as they are, or what was last delivered when there are none.
   * @throws HttpError 409 for partitions of others, 503 while the group is rebalancing
   */
  async commit(positions: readonly TopicPartitionOffset[], deadline: AbortSignal): Promise<void> {
    const until = deadlineOf(undefined, deadline, this.closing.signal);
    while (this.member.state === 'joining' && !until.signal.aborted) await this.member.change(until.signal);
    until.release();
    if (this.member.state !== 'joined') throw notInGroup(this.member.failure);
    const foreign = positions.find((position) => !this.member.isAssigned(position));
    if (foreign !== undefined) {
      const { topic, partition } = foreign;
      throw new HttpError('conflict', `Partition ${partition} of ${topic} is not assigned to this instance.`);
    }
    const { commits } = this.member;
    const commit = positions.length > 0 ? commits.commit(positions) : commits.commitDelivered();
    await commit.catch((error: unknown) => {
      throw translateError(error);
    });
  }

  /** Wakes whoever waits, commits, leaves the group. */
  async close(): Promise<void> {
    this.closing.abort();
    const patience = deadlineOf(LAST_TURN_MS);
    await this.turns.take(patience.signal);
    patience.release();
    await this.member.close();
  }

  private async takeInTurn(
    topics: readonly string[],
    endTurn: () => void,
    until: AbortSignal,
  ): Promise<Consumed> {
    try {
      const replaced = this.renewed(sorted(topics));
      await untilAborted(replaced, until);
      while (!until.aborted) {
        const delivery = this.member.take(this.options.maxRecords, this.options.maxBytes);
        if (delivery !== undefined) return delivered(delivery, endTurn);
        if (this.member.state === 'dead') await this.retryOrThrow(until);
        else await this.member.change(until);
      }
      // a member that is still being replaced keeps the turn: nobody may take from either
      return this.nothing(() => void replaced.then(endTurn, endTurn));
    } catch (error) {
      endTurn();
      throw error;
    }
  }

  private nothing(settle: () => void): Consumed {
    return { messages: [], isJoined: this.member.state === 'joined', settle };
  }

  /** Makes the member one that lives and reads `topics`; the next begins only when the one before has committed. */
  private async renewed(topics: readonly string[]): Promise<void> {
    const isSame =
      topics.length === this.topics.length && topics.every((topic, i) => topic === this.topics[i]);
    if (isSame && !this.member.isLost) return;
    await this.member.close();
    if (this.closing.signal.aborted) return;
    this.topics = topics;
    this.member = this.options.createMember(topics);
  }

  private async retryOrThrow(until: AbortSignal): Promise<void> {
    const type = kafkaType(this.member.failure);
    if (type === undefined || !COORDINATOR_NOT_READY.has(type)) throw translateError(this.member.failure);
    await untilAborted(pause(COORDINATOR_PAUSE_MS), until);
    if (!until.aborted) await this.renewed(this.topics);
  }
}

function delivered(delivery: Delivery, endTurn: () => void): Consumed {
  return {
    messages: delivery.messages,
    isJoined: true,
    settle: (arrived) => {
      if (arrived) delivery.arrived();
      else delivery.putBack();
      endTurn();
    },
  };
}

function sorted(topics: readonly string[]): string[] {
  return [...new Set(topics)].sort();
}

function notInGroup(cause: unknown): HttpError {
  return new HttpError('backend_unavailable', 'The instance is not in its group at present.', { cause });
}
