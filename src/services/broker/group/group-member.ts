import type { HttpError } from '../../../http/errors.js';
import { endedWithin } from '../../../lib/within.js';
import { partitionKey, type TopicPartition } from '../kafka/partitions.js';
import { Changes } from '../kafka/waits.js';
import { AssignedLogs } from '../read/assigned-logs.js';
import { AssignedPartition } from '../read/assigned-partition.js';
import type { ReplyForm } from '../records/messages-json.js';
import { type Delivery, deliveryOf } from './delivery.js';
import type { Assignment } from './group-protocol.js';
import { GroupSession } from './group-session.js';
import type { MemberOptions } from './member-options.js';
import { OffsetCommits } from './offset-commits.js';
import { type StartOffset, StartOffsets } from './start-offsets.js';
import { partitionCounts, subscriptionProtocol } from './subscription-protocol.js';

/** The commit before a rebalance or a close gets so long, in ms. */
const COMMIT_MS = 2_000;
/** What was read ahead is dropped when nobody asked for so long, in ms. */
const DROP_MS = 5_000;
/** So often a member is maintained, in ms: with the age of what is known of topics, 30 s until new partitions are noticed. */
const MAINTENANCE_MS = 5_000;

/** One life of one consumer in its group: from joining until it leaves or dies. It is not revived; a new one is made. */
export class GroupMember {
  /** Topic -> partitions; empty until joined. */
  assignment: Assignment = new Map();
  state: 'joining' | 'joined' | 'dead' | 'closed' = 'joining';
  /** Why it died. */
  failure: HttpError | undefined;
  readonly commits: OffsetCommits;
  private readonly session: GroupSession;
  private readonly start: StartOffsets;
  private readonly logs: AssignedLogs;
  private readonly changes = new Changes();
  private readonly maintenance: NodeJS.Timeout;
  private counts = '';
  private lastTake = 0;

  constructor(private readonly options: MemberOptions) {
    const { cluster, coordinators, reader, group, commitIntervalMs, topics } = options;
    this.start = new StartOffsets(cluster, coordinators, group, options.offsetReset);
    this.logs = new AssignedLogs({
      reader,
      reset: (partition) => this.start.again(partition),
      onPassed: ({ topic, partition, nextOffset: offset }) =>
        this.commits.passed({ topic, partition, offset }),
    });
    this.commits = new OffsetCommits({
      coordinators,
      membership: () => this.session.membership,
      isAssigned: (partition) => this.isAssigned(partition),
      isJoined: () => this.state === 'joined',
      counters: options.counters,
      log: options.log,
    });
    if (commitIntervalMs !== undefined) this.commits.repeat(commitIntervalMs);
    const protocol = subscriptionProtocol(topics, cluster, (counts) => {
      this.counts = counts;
    });
    this.session = new GroupSession({
      ...options,
      group,
      protocol,
      onJoined: (assignment, isContinuous) => this.joined(assignment, isContinuous),
      onRebalance: (canCommit) => this.rebalance(canCommit),
      onDeath: (error) => this.die(error),
    });
    options.onJoining();
    this.maintenance = setInterval(() => this.maintain(), MAINTENANCE_MS);
    this.maintenance.unref();
  }

  get lag(): number {
    return this.logs.lag;
  }

  get isLost(): boolean {
    return this.state === 'dead' || this.state === 'closed';
  }

  /** What is there now, up to the limits; `undefined` when nothing is. */
  async take(form: ReplyForm): Promise<Delivery | undefined> {
    if (this.state !== 'joined') return undefined;
    this.lastTake = this.options.now();
    const taken = await this.logs.take(form);
    if (taken === undefined) return undefined;
    return deliveryOf(taken, this.commits, () => this.changes.tell());
  }

  /** Resolves when there may be records to take, at a join, at death, or at `signal`. @throws HttpError where nothing can be read */
  async more(signal: AbortSignal): Promise<void> {
    if (this.state !== 'joined') return this.change(signal);
    const end = this.changes.signal(signal);
    try {
      await this.logs.fill(end.signal);
    } finally {
      end.release();
    }
  }

  /** Resolves at the next join, death or close, or at `signal`. */
  change(signal: AbortSignal): Promise<void> {
    return this.changes.next(signal);
  }

  /** Asks the broker now whether the group rebalances. */
  heartbeatNow(): void {
    if (this.state === 'joined') this.session.heartbeatNow();
  }

  /** What is known of its topics by now; where partitions were added, the group deals them out. */
  async noticeTopics(): Promise<void> {
    if (this.state !== 'joined') return;
    const { cluster, topics } = this.options;
    if ((await partitionCounts(cluster, topics)) !== this.counts && this.state === 'joined')
      this.session.rejoin();
  }

  isAssigned({ topic, partition }: TopicPartition): boolean {
    return this.assignment.get(topic)?.includes(partition) === true;
  }

  /** Commits (where commits are automatic), leaves the group. */
  async close(): Promise<void> {
    if (this.state === 'closed') return;
    this.commits.stop();
    clearInterval(this.maintenance);
    await this.flushCommits();
    this.state = 'closed';
    this.logs.assign([]);
    this.changes.tell();
    await this.session.leave();
  }

  private async joined(assignment: Assignment, isContinuous: boolean): Promise<void> {
    const wanted = [...assignment].flatMap(([topic, partitions]) =>
      partitions.map((partition) => ({ topic, partition })),
    );
    const kept = isContinuous ? wanted.flatMap((one) => this.logs.find(one.topic, one.partition) ?? []) : [];
    const isKept = new Set(kept.map(partitionKey));
    const added = await this.start.of(wanted.filter((one) => !isKept.has(partitionKey(one))));
    if (this.isLost) return;
    // what was delivered before of partitions that others may have had meanwhile is read again from there
    this.commits.keepOnly(isKept);
    this.logs.assign([
      ...kept,
      ...added.map((one) => new AssignedPartition(one.topic, one.partition, one.readFrom)),
    ]);
    this.assignment = assignment;
    await this.commitStart(added.filter(({ isReset }) => isReset));
    if (this.isLost) return;
    this.state = 'joined';
    this.options.counters.joins += 1;
    this.changes.tell();
  }

  /**
   * A group that has read nothing yet would begin elsewhere after a crash. With `latest` it would pass over what came
   * meanwhile, so that its start is committed before anybody is told of the join.
   */
  private async commitStart(begun: readonly StartOffset[]): Promise<void> {
    const { commitIntervalMs, offsetReset } = this.options;
    if (begun.length === 0 || (commitIntervalMs === undefined && offsetReset !== 'latest')) return;
    for (const { topic, partition, readFrom: offset } of begun)
      this.commits.passed({ topic, partition, offset });
    // what fails here, such as in a rebalance, goes with the next commit
    if (offsetReset === 'latest') await endedWithin(COMMIT_MS, this.commits.commitDelivered());
  }

  private async rebalance(canCommit: boolean): Promise<void> {
    if (canCommit) await this.flushCommits();
    if (this.state !== 'joined') return;
    this.state = 'joining';
    this.options.counters.rebalances += 1;
    this.options.onJoining();
    this.changes.tell();
  }

  private async flushCommits(): Promise<void> {
    if (this.options.commitIntervalMs === undefined || this.state !== 'joined') return;
    await endedWithin(COMMIT_MS, this.commits.commitDelivered());
  }

  private maintain(): void {
    if (this.options.now() - this.lastTake > DROP_MS) this.logs.drop();
    // a request that waits for long would notice no new partition; what cannot be asked now is asked again
    void this.noticeTopics().catch(() => {});
  }

  private die(error: HttpError): void {
    if (this.isLost) return;
    this.state = 'dead';
    this.failure = error;
    this.commits.stop();
    clearInterval(this.maintenance);
    this.logs.assign([]);
    this.changes.tell();
  }
}
