import type { Cluster } from '../kafka/cluster.js';
import { partitionKey } from '../kafka/partitions.js';
import { pause } from '../kafka/waits.js';
import { type FetchedPartition, fetchCall, type Position } from './fetch-call.js';

/** How long one question to a broker waits, in ms: so much later at most does it end when nobody waits any more. */
const SLICE_MS = 250;
/** What an answer may take beyond that, in ms. */
const GRACE_MS = 3_000;
/** A watch that fails (broker away, leader moved) tells its watchers to look for themselves after so long, in ms. */
const PAUSE_MS = 200;
/** Questions to one broker at a time, each on a connection of its own, so that a new watcher need not wait for a slice. */
export const WATCH_LANES = 4;

interface Watcher {
  readonly position: Position;
  readonly wake: () => void;
  isAsked: boolean;
}

/** Those who wait at one broker. */
interface Watched {
  readonly watchers: Set<Watcher>;
  readonly freeLanes: number[];
}

/**
 * Waits for records at the end of logs, for all callers together: few requests a broker at a time, because a broker
 * answers one after the other on a connection and a hundred empty waits of a second would take a hundred seconds.
 */
export class LogWatch {
  private readonly nodes = new Map<number, Watched>();

  constructor(private readonly cluster: Cluster) {}

  /** Resolves when there may be something at one of `positions`, which `node` leads, or `signal` aborts. */
  watch(node: number, positions: readonly Position[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const watched = this.watchedAt(node);
      const wake = () => {
        signal.removeEventListener('abort', wake);
        for (const watcher of mine) watched.watchers.delete(watcher);
        resolve();
      };
      const mine: Watcher[] = positions.map((position) => ({ position, wake, isAsked: false }));
      if (signal.aborted) return resolve();
      for (const watcher of mine) watched.watchers.add(watcher);
      signal.addEventListener('abort', wake);
      this.askNew(node, watched);
    });
  }

  private watchedAt(node: number): Watched {
    let watched = this.nodes.get(node);
    if (watched === undefined) {
      watched = { watchers: new Set(), freeLanes: Array.from({ length: WATCH_LANES }, (_, i) => i) };
      this.nodes.set(node, watched);
    }
    return watched;
  }

  /** Asks for those that no question under way asks for; they wait for a free lane otherwise. */
  private askNew(node: number, watched: Watched): void {
    const unasked = [...watched.watchers].filter(({ isAsked }) => !isAsked);
    if (unasked.length === 0) return;
    const lane = watched.freeLanes.pop();
    if (lane === undefined) return;
    for (const watcher of unasked) watcher.isAsked = true;
    void this.ask(node, lane, unasked).finally(() => {
      for (const watcher of unasked) watcher.isAsked = false;
      watched.freeLanes.push(lane);
      this.askNew(node, watched);
    });
  }

  private async ask(node: number, lane: number, watchers: readonly Watcher[]): Promise<void> {
    try {
      const call = fetchCall(earliestByPartition(watchers), { maxWaitMs: SLICE_MS, maxBytes: 1 });
      const replies = await this.cluster.call(node, `poll ${lane}`, call, SLICE_MS + GRACE_MS);
      wakeThose(watchers, replies);
    } catch {
      await pause(PAUSE_MS);
      for (const { wake } of watchers) wake();
    }
  }
}

/** A request may name a partition once: the least offset that somebody waits at. */
function earliestByPartition(watchers: readonly Watcher[]): Position[] {
  const earliest = new Map<string, Position>();
  for (const { position } of watchers) {
    const key = partitionKey(position);
    const other = earliest.get(key);
    if (other === undefined || position.offset < other.offset) earliest.set(key, position);
  }
  return [...earliest.values()];
}

function wakeThose(watchers: readonly Watcher[], replies: readonly FetchedPartition[]): void {
  const byPartition = new Map(replies.map((reply) => [partitionKey(reply), reply]));
  for (const { position, wake } of watchers) {
    const reply = byPartition.get(partitionKey(position));
    if (reply !== undefined && (reply.errorCode !== 0 || reply.lastStableOffset > position.offset)) wake();
  }
}
