import { HttpError } from '../../../http/errors.js';
import { deadlineOf } from '../../../lib/deadline.js';
import { groupBy } from '../../../lib/group-by.js';
import { kafkaRefusal, STALE_LEADER, translateError } from '../errors.js';
import type { Cluster } from '../kafka/cluster.js';
import { errorType } from '../kafka/kafkajs-internals.js';
import { leaderOf, partitionKey } from '../kafka/partitions.js';
import { pause } from '../kafka/waits.js';
import type { Unpacking } from '../records/decompress.js';
import { readableBatches, type UnpackBudget } from '../records/record-batches.js';
import { RecordCursor } from '../records/record-cursor.js';
import { type FetchedPartition, fetchCall, type Position } from './fetch-call.js';
import type { LogWatch } from './log-watch.js';

/** What one look at one partition came to. */
export interface ReadResult {
  readonly records: RecordCursor | undefined;
  /** Where the next look begins: beyond what was read and what is not for readers (control records). */
  readonly next: number;
  /** End of the log as a reader of committed records sees it; `undefined` where it was not told. */
  readonly end: number | undefined;
  readonly failure: ReadFailure | undefined;
}

export interface ReadFailure {
  /** Kafka's name for it. */
  readonly type: string;
  readonly error: HttpError;
}

interface LeaderRequest {
  readonly node: number;
  readonly positions: Position[];
}

/** How long the answer to a Fetch may take beyond the wait that it asks for, in ms. */
const FETCH_MS = 3_000;
/** What one look unpacks, in parts of what it reads: text packs to a fifth or a tenth, so that the next look reads little twice. */
const UNPACKED_FACTOR = 8;
/** No name of Kafka's: it has said nothing. Its partitions get other leaders soon. */
const AWAY = 'BROKER_AWAY';
const AWAY_CODES: ReadonlySet<string> = new Set(['backend_unavailable', 'timeout']);
/** Wait where no partition has a leader to ask, in ms. */
const NO_LEADER_MS = 50;

/** Reads logs at given positions, at all brokers at once. */
export class LogReader {
  constructor(
    private readonly cluster: Cluster,
    private readonly watch: LogWatch,
    /** Of one look, shared by its brokers; soft. */
    private readonly maxBytes: number,
    private readonly unpacking: Unpacking,
  ) {}

  /** What is there now; a broker that cannot be asked is a failure of its partitions alone. @throws HttpError when nothing is known of their topics */
  async look(positions: readonly Position[]): Promise<Map<Position, ReadResult>> {
    const results = new Map<Position, ReadResult>();
    const requests = await this.requestsFor(positions, results);
    const budget = { unpacking: this.unpacking, left: this.maxBytes * UNPACKED_FACTOR };
    const maxBytes = Math.max(1, Math.floor(this.maxBytes / Math.max(1, requests.length)));
    await Promise.all(
      requests.map(async ({ node, positions: asked }) => {
        const call = fetchCall(asked, { maxWaitMs: 0, maxBytes });
        const replies = await this.cluster.call(node, 'fetch', call, FETCH_MS).catch(translateError);
        if (replies instanceof HttpError) {
          for (const position of asked) results.set(position, unasked(position, replies));
          return;
        }
        const byPartition = new Map(replies.map((reply) => [partitionKey(reply), reply]));
        for (const position of asked)
          results.set(position, await resultOf(position, byPartition.get(partitionKey(position)), budget));
      }),
    );
    return results;
  }

  /** Resolves when there may be something at one of `positions`, or `until` aborts. */
  async wait(positions: readonly Position[], until: AbortSignal): Promise<void> {
    const topics = await this.cluster.topics(positions.map(({ topic }) => topic));
    const byLeader = groupBy(positions, (position) => leaderOf(position, topics));
    byLeader.delete(-1);
    if (byLeader.size === 0) return pause(NO_LEADER_MS);
    const done = new AbortController();
    const first = deadlineOf(undefined, until, done.signal);
    await Promise.race([...byLeader].map(([node, watched]) => this.watch.watch(node, watched, first.signal)));
    done.abort();
    first.release();
  }

  /** Asks again who leads the partitions of `positions`. */
  async refresh(positions: readonly Position[]): Promise<void> {
    await this.cluster.refresh([...new Set(positions.map(({ topic }) => topic))]);
  }

  /** Positions by leader; the same partition at two offsets needs two requests. */
  private async requestsFor(
    positions: readonly Position[],
    results: Map<Position, ReadResult>,
  ): Promise<LeaderRequest[]> {
    const topics = await this.cluster.topics(positions.map(({ topic }) => topic));
    const byNode = new Map<number, LeaderRequest[]>();
    const times = new Map<string, number>();
    for (const position of positions) {
      const node = leaderOf(position, topics);
      if (node < 0) {
        const type = topics.has(position.topic) ? 'LEADER_NOT_AVAILABLE' : 'UNKNOWN_TOPIC_OR_PARTITION';
        results.set(position, failed(position, type));
        continue;
      }
      const key = partitionKey(position);
      const time = times.get(key) ?? 0;
      times.set(key, time + 1);
      const requests = byNode.get(node) ?? [];
      byNode.set(node, requests);
      const request = requests[time];
      if (request === undefined) requests.push({ node, positions: [position] });
      else request.positions.push(position);
    }
    return [...byNode.values()].flat();
  }
}

/** Whether a look at another broker, or a little later, may go well. */
export function isStale(failure: ReadFailure): boolean {
  return STALE_LEADER.has(failure.type) || isAway(failure);
}

/** Whether the leader could not be asked. */
export function isAway({ type }: ReadFailure): boolean {
  return type === AWAY;
}

async function resultOf(
  position: Position,
  reply: FetchedPartition | undefined,
  budget: UnpackBudget,
): Promise<ReadResult> {
  const { topic, partition, offset } = position;
  if (reply === undefined) return failed(position, 'UNKNOWN_TOPIC_OR_PARTITION');
  if (reply.errorCode !== 0) return failed(position, errorType(reply.errorCode));
  try {
    const { batches, next } = await readableBatches(reply.records, reply.aborted, budget);
    const records = batches.length === 0 ? undefined : new RecordCursor(topic, partition, batches, offset);
    return {
      records,
      next: Math.max(offset, next ?? offset),
      end: reply.lastStableOffset,
      failure: undefined,
    };
  } catch (error) {
    return {
      records: undefined,
      next: offset,
      end: undefined,
      failure: { type: 'UNREADABLE', error: unreadable(position, translateError(error)) },
    };
  }
}

/** With the log, so that a reader who is to pass over it knows where. */
function unreadable({ topic, partition }: Position, { code, message, cause }: HttpError): HttpError {
  return new HttpError(code, `${message} (topic ${topic}, partition ${partition})`, { cause });
}

function unasked({ offset }: Position, error: HttpError): ReadResult {
  const type = AWAY_CODES.has(error.code) ? AWAY : 'UNREADABLE';
  return { records: undefined, next: offset, end: undefined, failure: { type, error } };
}

function failed({ topic, partition, offset }: Position, type: string): ReadResult {
  const error = kafkaRefusal(type, `topic ${topic}, partition ${partition}, offset ${offset}`);
  return { records: undefined, next: offset, end: undefined, failure: { type, error } };
}
