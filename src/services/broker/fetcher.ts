import { HttpError } from '../../http/errors.js';
import { deadlineOf } from '../../lib/deadline.js';
import type { Cluster } from './cluster.js';
import { kafkaRefusal, translateError } from './errors.js';
import { fetchOnce, type Position, type ReadResult, readReply } from './log-reader.js';
import { LogWatch } from './log-watch.js';
import type { Message } from './schemas.js';
import type { Topic } from './topics.js';
import { pause } from './waits.js';

export interface PartitionError extends Position {
  readonly error: HttpError;
}

export interface Fetched {
  readonly messages: Message[];
  /** Partitions that could not be read while others could. */
  readonly errors: readonly PartitionError[];
}

/** Least pause between two looks at the same partitions, in ms: a gap in a compacted log must not become a busy loop. */
const LEAST_PAUSE_MS = 20;
/** Looks at a partition whose leader is not where it was said to be, before that is an error. */
const LEADER_TRIES = 3;

/** Reads logs at given offsets, without a consumer group. */
export class Fetcher {
  private readonly watch: LogWatch;

  constructor(
    private readonly cluster: Cluster,
    private readonly maxBytes: number,
  ) {
    this.watch = new LogWatch(cluster);
  }

  /**
   * Returns as soon as there is a record at one of `positions`, and with nothing when `timeoutMs` have passed or
   * one of `ends` aborts.
   * @throws HttpError when a topic or partition does not exist, or none of `positions` can be read
   */
  async fetch(
    positions: readonly Position[],
    timeoutMs: number,
    ends: readonly AbortSignal[],
  ): Promise<Fetched> {
    await this.checkPartitions(positions);
    const deadline = deadlineOf(timeoutMs, ...ends);
    try {
      return await this.read(positions, deadline.signal);
    } finally {
      deadline.release();
    }
  }

  private async read(positions: readonly Position[], deadline: AbortSignal): Promise<Fetched> {
    const distinct = new Map(positions.map((p) => [`${p.offset} ${p.partition} ${p.topic}`, p]));
    let wanted = [...distinct.values()];
    for (let leaderMisses = 0; ; ) {
      const results = await this.look(wanted);
      const messages = wanted.flatMap((position) => results.get(position)?.messages ?? []);
      const failures = wanted.flatMap((position) => failureOf(position, results.get(position)));
      const stale = failures.some(({ isStale }) => isStale);
      if (messages.length > 0) return { messages, errors: failures };
      if (failures.length > 0 && (!stale || ++leaderMisses >= LEADER_TRIES)) {
        throw (failures.find(({ isStale }) => !isStale) ?? (failures[0] as PartitionError)).error;
      }
      if (deadline.aborted) return { messages: [], errors: [] };
      if (stale) await this.cluster.refresh([...new Set(wanted.map(({ topic }) => topic))]);
      wanted = wanted.map((position) => movedTo(position, results.get(position)));
      await Promise.all([this.waitForMore(wanted, deadline), pause(LEAST_PAUSE_MS)]);
    }
  }

  private async checkPartitions(positions: readonly Position[]): Promise<void> {
    const names = [...new Set(positions.map(({ topic }) => topic))];
    let topics = await this.cluster.existing(names);
    if (positions.some((position) => isBeyond(position, topics))) topics = await this.cluster.refresh(names);
    const unknown = positions.find((position) => isBeyond(position, topics));
    if (unknown === undefined) return;
    const { topic, partition } = unknown;
    const count = topics.get(topic)?.partitions.length;
    if (count === undefined) throw new HttpError('not_found', `There is no topic ${topic}.`);
    throw new HttpError(
      'invalid_request',
      `Topic ${topic} has the partitions 0 to ${count - 1}, not ${partition}.`,
    );
  }

  /** Reads what is there now, at all brokers at once, each for its share of the bytes. */
  private async look(positions: readonly Position[]): Promise<Map<Position, ReadResult>> {
    const results = new Map<Position, ReadResult>();
    const requests = await this.requestsFor(positions, results);
    const maxBytes = Math.max(1, Math.floor(this.maxBytes / Math.max(1, requests.length)));
    await Promise.all(
      requests.map(async ({ node, positions: asked }) => {
        const options = { node, lane: 'fetch', maxWaitMs: 0, maxBytes } as const;
        const replies = await fetchOnce(this.cluster, asked, options).catch((error: unknown) => {
          throw translateError(error);
        });
        for (const position of asked) results.set(position, readReply(position, replies.get(position)));
      }),
    );
    return results;
  }

  /** Positions by leader; the same partition at two offsets needs two requests. */
  private async requestsFor(positions: readonly Position[], results: Map<Position, ReadResult>) {
    const topics = await this.cluster.topics(positions.map(({ topic }) => topic));
    const requests: { node: number; positions: Position[]; partitions: Set<string> }[] = [];
    for (const position of positions) {
      const node = leaderOf(position, topics);
      if (node < 0) {
        const error = kafkaRefusal(
          'LEADER_NOT_AVAILABLE',
          `topic ${position.topic}, partition ${position.partition}`,
        );
        results.set(position, { messages: [], bytes: 0, next: position.offset, error, isStale: true });
        continue;
      }
      const key = `${position.partition} ${position.topic}`;
      let request = requests.find((one) => one.node === node && !one.partitions.has(key));
      if (request === undefined) {
        request = { node, positions: [], partitions: new Set() };
        requests.push(request);
      }
      request.positions.push(position);
      request.partitions.add(key);
    }
    return requests;
  }

  private async waitForMore(positions: readonly Position[], deadline: AbortSignal): Promise<void> {
    const topics = await this.cluster.topics(positions.map(({ topic }) => topic));
    const byNode = new Map<number, Position[]>();
    for (const position of positions) {
      const node = leaderOf(position, topics);
      if (node >= 0) byNode.set(node, [...(byNode.get(node) ?? []), position]);
    }
    if (byNode.size === 0) return pause(LEAST_PAUSE_MS);
    const done = new AbortController();
    const first = deadlineOf(undefined, deadline, done.signal);
    await Promise.race([...byNode].map(([node, watched]) => this.watch.watch(node, watched, first.signal)));
    done.abort();
    first.release();
  }
}

function leaderOf({ topic, partition }: Position, topics: ReadonlyMap<string, Topic>): number {
  return topics.get(topic)?.partitions[partition]?.leader ?? -1;
}

function isBeyond({ topic, partition }: Position, topics: ReadonlyMap<string, Topic>): boolean {
  return partition >= (topics.get(topic)?.partitions.length ?? 0);
}

function failureOf(
  position: Position,
  result: ReadResult | undefined,
): (PartitionError & { isStale: boolean })[] {
  return result?.error === undefined ? [] : [{ ...position, error: result.error, isStale: result.isStale }];
}

function movedTo(position: Position, result: ReadResult | undefined): Position {
  return result === undefined ? position : { ...position, offset: result.next };
}
