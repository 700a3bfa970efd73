import type { Logger } from '../../../lib/logger.js';
import { within } from '../../../lib/within.js';
import type { NodeName } from '../redis/node-address.js';
import type { RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';
import { type ClusterView, newestView, readView, VIEW_COMMANDS } from './cluster-view.js';

export interface TopologyOptions {
  /** Nodes to begin with, and to fall back to. */
  readonly seeds: readonly NodeName[];
  /** Sends commands to a node. @throws what keeps it from answering */
  readonly ask: (node: NodeName, commands: readonly Command[]) => Promise<RespValue[]>;
  /** Whether a node is connected to. */
  readonly isUp: (node: NodeName) => boolean;
  /** Told of every view that was taken. */
  readonly onView: () => void;
  readonly log: Logger;
}

/** How often the cluster is asked, in ms: while all is well, and while something is missing. */
const PERIOD_MS = 2_000;
const TROUBLE_PERIOD_MS = 250;
/** Redirections, which come by the hundred when a slot moves, make it ask no sooner than this after the last time, in ms. */
const LEAST_PAUSE_MS = 50;
/** A node that has not answered by then is left out, in ms: it may have stopped in its tracks. */
const ANSWER_MS = 1_000;
/** So many primaries are asked at once, so that one that is cut off from the others is outvoted. */
const ASKED = 3;
/** And so many nodes when no primary answers. */
const ASKED_IN_NEED = 20;

/** Which primary has which slot, asked for again and again. */
export class Topology {
  private view: ClusterView | undefined;
  /** The view's, with what redirections have told since. */
  private owners: (NodeName | undefined)[] = [];
  private lastFailure: Error | undefined;
  private timer: NodeJS.Timeout | undefined;
  private asking: Promise<void> | undefined;
  private lastEnd = 0;
  private waiting: (() => void)[] = [];
  private stopped = false;

  constructor(private readonly options: TopologyOptions) {}

  /** Asks at once, and from then on. */
  start(): void {
    this.asking = this.renew();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.tell(this.waiting);
  }

  /** Why nothing is known of the cluster; `undefined` once something is. */
  get failure(): Error | undefined {
    return this.view === undefined ? this.lastFailure : undefined;
  }

  get isKnown(): boolean {
    return this.view !== undefined;
  }

  /** The cluster says of itself that it works, and every slot has a primary. */
  get isWhole(): boolean {
    return this.view?.isWorking === true && !this.owners.includes(undefined);
  }

  /** Resolves when the cluster is known or an attempt has failed, at once where one of them is already so. */
  async settled(): Promise<void> {
    if (this.view === undefined && this.lastFailure === undefined) await this.asking;
  }

  ownerOf(slot: number): NodeName | undefined {
    return this.owners[slot];
  }

  /** By their lowest slot. */
  get primaries(): readonly NodeName[] {
    return this.view?.primaries ?? [];
  }

  knows(node: NodeName): boolean {
    return this.view?.known.has(node) === true;
  }

  /** A node said so; of one that the cluster has not named it is only a reason to ask again. */
  moved(slot: number, to: NodeName): void {
    if (this.knows(to)) this.owners[slot] = to;
    this.refreshSoon();
  }

  /** Something has changed or is about to. */
  refreshSoon(): void {
    if (this.asking !== undefined || this.stopped) return;
    this.schedule(Math.max(0, this.lastEnd + LEAST_PAUSE_MS - performance.now()));
  }

  /** Resolves when the cluster was asked once more. */
  renewed(): Promise<void> {
    if (this.stopped) return Promise.resolve();
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.refreshSoon();
    });
  }

  private schedule(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.start(), ms);
    this.timer.unref();
  }

  private async renew(): Promise<void> {
    const served = this.waiting;
    this.waiting = [];
    try {
      await this.ask();
    } catch (error) {
      this.failed(error as Error);
    }
    this.asking = undefined;
    this.lastEnd = performance.now();
    this.tell(served);
    if (this.stopped) return;
    const isWell = this.isWhole && this.primaries.every(this.options.isUp);
    this.schedule(this.waiting.length > 0 ? LEAST_PAUSE_MS : isWell ? PERIOD_MS : TROUBLE_PERIOD_MS);
  }

  private tell(waiting: readonly (() => void)[]): void {
    for (const tell of waiting) tell();
  }

  /** @throws the failure of one node when none has answered */
  private async ask(): Promise<void> {
    const { seeds, isUp } = this.options;
    const up = shuffled(this.primaries.filter(isUp)).slice(0, ASKED);
    const answered = await this.viewsOf(up).catch(() => []);
    const others = new Set([...seeds, ...(this.view?.known ?? [])]);
    for (const node of up) others.delete(node);
    const views = answered.length > 0 ? answered : await this.viewsOf([...others].slice(0, ASKED_IN_NEED));
    const view = newestView(views);
    if (view === undefined || this.stopped) return;
    this.take(view);
  }

  private async viewsOf(nodes: readonly NodeName[]): Promise<ClusterView[]> {
    const results = await Promise.allSettled(nodes.map((node) => this.viewOf(node)));
    const views = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const failure = results.find((result) => result.status === 'rejected');
    if (views.length === 0 && failure !== undefined) throw failure.reason;
    return views;
  }

  private async viewOf(node: NodeName): Promise<ClusterView> {
    return readView(await within(ANSWER_MS, this.options.ask(node, VIEW_COMMANDS)), node);
  }

  private take(view: ClusterView): void {
    const before = this.view;
    this.view = view;
    this.owners = [...view.owners];
    this.lastFailure = undefined;
    if (before?.primaries.join() !== view.primaries.join() || before.isWorking !== view.isWorking)
      this.options.log.info(
        { primaries: view.primaries, epoch: view.epoch, working: view.isWorking },
        'Redis Cluster as it is now',
      );
    this.options.onView();
  }

  private failed(error: Error): void {
    if (this.stopped) return;
    if (error.message !== this.lastFailure?.message)
      this.options.log.warn({ err: error }, 'no node of the Redis Cluster tells its topology');
    this.lastFailure = error;
  }
}

function shuffled<T>(values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}
