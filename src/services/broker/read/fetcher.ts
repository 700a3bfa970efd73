import { HttpError } from '../../../http/errors.js';
import { deadlineOf } from '../../../lib/deadline.js';
import { groupBy } from '../../../lib/group-by.js';
import type { LightWork } from '../../../lib/light-work.js';
import { sliced } from '../../../lib/slices.js';
import type { Cluster } from '../kafka/cluster.js';
import { existingPartitions, leaderOf, partitionKey } from '../kafka/partitions.js';
import { LEADER_PAUSE_MS, pause } from '../kafka/waits.js';
import { MessagesJson, NO_MESSAGES, type ReplyForm } from '../records/messages-json.js';
import type { Position } from './fetch-call.js';
import { FetchPlaces } from './fetch-places.js';
import { isAway, isStale, type LogReader, type ReadResult } from './log-reader.js';

export interface PartitionError extends Position {
  readonly error: HttpError;
}

export interface Fetched {
  /** As JSON, an array. */
  readonly messages: Buffer;
  /** Of records. */
  readonly count: number;
  /** Partitions that could not be read while others could. */
  readonly errors: readonly PartitionError[];
}

export interface FetchOptions {
  readonly user: string;
  /** Its bytes are at most those of the service. */
  readonly form: ReplyForm;
  /** How long it waits for a record. */
  readonly timeoutMs: number;
  /** Of the request. */
  readonly signal: AbortSignal;
  /** Of the gateway: what waits ends with what there is. */
  readonly stopping: AbortSignal;
}

/** Least pause between two looks at the same partitions, in ms: a gap in a compacted log must not become a busy loop. */
const LEAST_PAUSE_MS = 20;
/** Looks, at least, at a partition whose leader is not where it was said to be, before that is an error. */
const LEADER_TRIES = 3;
/** A request to Kafka names a partition once, so each further offset of one is a request more. */
const OFFSETS_PER_PARTITION = 100;

/** Reads logs at given offsets, without a consumer group. */
export class Fetcher {
  private readonly places: FetchPlaces;

  constructor(
    private readonly cluster: Cluster,
    private readonly reader: LogReader,
    private readonly maxBytes: number,
    /** Fetches of much make room for it. */
    light?: LightWork,
  ) {
    this.places = new FetchPlaces(maxBytes, light);
  }

  /**
   * Returns as soon as there is a record at one of `positions`, and with nothing when `timeoutMs` have passed or
   * `stopping` or `signal` aborts.
   * @param user whose request it is
   * @throws HttpError when a topic or partition does not exist, or none of `positions` can be read; 400 for too many
   * offsets of one partition
   */
  async fetch(
    positions: readonly Position[],
    { user, form, timeoutMs, signal, stopping }: FetchOptions,
  ): Promise<Fetched> {
    const distinct = distinctOf(positions);
    await existingPartitions(this.cluster, distinct);
    const deadline = deadlineOf(timeoutMs, signal, stopping);
    try {
      return await this.read(distinct, { user, form }, deadline.signal, signal);
    } finally {
      deadline.release();
    }
  }

  private async read(
    positions: readonly Position[],
    { user, form }: Pick<FetchOptions, 'user' | 'form'>,
    deadline: AbortSignal,
    signal: AbortSignal,
  ): Promise<Fetched> {
    let wanted = [...positions];
    for (let leaderMisses = 0; ; ) {
      const { results, messages } = await this.places.use(
        { user, node: await this.firstLeader(wanted) },
        () => this.look(wanted, form),
        signal,
      );
      const failures = wanted.flatMap((position) => failureOf(position, results.get(position)));
      const stale = failures.some((failure) => failure.isStale);
      if (messages !== undefined) return { ...messages, errors: failures };
      if (stale) leaderMisses += 1;
      const isLate = deadline.aborted && (leaderMisses >= LEADER_TRIES || failures.some((one) => one.isAway));
      if (failures.length > 0 && (!stale || isLate)) {
        const [first] = [...failures.filter((failure) => !failure.isStale), ...failures];
        throw (first as PartitionError).error;
      }
      if (deadline.aborted && !stale) return { messages: NO_MESSAGES, count: 0, errors: [] };
      if (stale) await this.reader.refresh(wanted);
      wanted = wanted.map((position) => movedTo(position, results.get(position)));
      const pauseMs = stale ? LEADER_PAUSE_MS : LEAST_PAUSE_MS;
      await Promise.all([this.reader.wait(wanted, deadline), pause(pauseMs)]);
    }
  }

  private async look(positions: readonly Position[], form: ReplyForm) {
    const results = await this.reader.look(positions);
    return { results, messages: await sliced(this.messagesOf(positions, results, form)) };
  }

  private async firstLeader([first]: readonly Position[]): Promise<number> {
    if (first === undefined) return -1;
    return leaderOf(first, await this.cluster.topics([first.topic]));
  }

  /** In the order of `positions`, up to the limits; `undefined` where there are none. */
  private *messagesOf(
    positions: readonly Position[],
    results: ReadonlyMap<Position, ReadResult>,
    form: ReplyForm,
  ): Generator<void, Pick<Fetched, 'messages' | 'count'> | undefined> {
    const json = new MessagesJson({ ...form, maxBytes: Math.min(form.maxBytes, this.maxBytes) });
    for (const position of positions) {
      const records = results.get(position)?.records;
      if (records !== undefined && !(yield* records.writeTo(json))) break;
    }
    return json.count === 0 ? undefined : { messages: yield* json.finish(), count: json.count };
  }
}

/** @throws HttpError 400 */
function distinctOf(positions: readonly Position[]): Position[] {
  const distinct = new Map(positions.map((one) => [`${one.offset} ${partitionKey(one)}`, one]));
  for (const [, offsets] of groupBy([...distinct.values()], partitionKey)) {
    if (offsets.length <= OFFSETS_PER_PARTITION) continue;
    const { topic, partition } = offsets[0] as Position;
    const text = `At most ${OFFSETS_PER_PARTITION} offsets of one partition can be read at once; of partition ${partition} of ${topic} there are ${offsets.length}.`;
    throw new HttpError('invalid_request', text);
  }
  return [...distinct.values()];
}

function failureOf(
  position: Position,
  result: ReadResult | undefined,
): (PartitionError & { isStale: boolean; isAway: boolean })[] {
  const failure = result?.failure;
  if (failure === undefined) return [];
  return [{ ...position, error: failure.error, isStale: isStale(failure), isAway: isAway(failure) }];
}

function movedTo(position: Position, result: ReadResult | undefined): Position {
  return result === undefined ? position : { ...position, offset: result.next };
}
