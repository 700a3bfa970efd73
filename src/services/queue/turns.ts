import type { Logger } from '../../lib/logger.js';
import type { FlowClaim, FlowControls } from './flow-controls.js';
import type { Token } from './message.js';
import type { DueToken, OrderedQueues } from './ordered-queues.js';
import type { TokenSender } from './token-sender.js';

export interface TurnsOptions {
  readonly queues: OrderedQueues;
  readonly flows: FlowControls;
  readonly sender: TokenSender;
  readonly log: Logger;
}

/** Lets held messages go when what they waited for is over: a place in their queue, room or a new period under their key. */
export class Turns {
  private readonly timers = new Map<string, NodeJS.Timeout>();
  private readonly aborter = new AbortController();
  private repairing = false;

  constructor(private readonly options: TurnsOptions) {}

  /** Claims a message with a flow-control key, or leaves it held until there is room. */
  async claim(token: Token, key: string): Promise<FlowClaim> {
    const claim = await this.options.flows.claim(token, key);
    if (claim.message === undefined && claim.roomInMs !== undefined) this.wake(key, claim.roomInMs);
    return claim;
  }

  /** Publishes tokens of messages that were let go; the sweeper finds what is lost. */
  async send(tokens: readonly DueToken[]): Promise<void> {
    await this.quietly(() => this.options.sender.sendAll(tokens, this.aborter.signal));
  }

  /** To be called when an attempt under the key ended, whatever its outcome. What fails here the sweeper repairs. */
  async releaseKey(key: string): Promise<void> {
    await this.quietly(async () => {
      const { tokens, roomInMs } = await this.options.flows.release(key);
      if (roomInMs !== undefined) this.wake(key, roomInMs);
      await this.options.sender.sendAll(tokens, this.aborter.signal);
    });
  }

  /** To be called when a message of the queue, or its last callback, is over. */
  async releaseQueue(name: string): Promise<void> {
    await this.quietly(async () => {
      await this.options.sender.sendAll(await this.options.queues.release(name), this.aborter.signal);
    });
  }

  /** What a crash left held although there is room. */
  async repair(): Promise<void> {
    if (this.repairing) return;
    this.repairing = true;
    try {
      for (const name of await this.options.queues.waiting()) await this.releaseQueue(name);
      for (const key of await this.options.flows.waiting()) await this.releaseKey(key);
    } finally {
      this.repairing = false;
    }
  }

  stop(): void {
    this.aborter.abort();
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  private wake(key: string, inMs: number): void {
    if (this.timers.has(key) || this.aborter.signal.aborted) return;
    const fire = () => {
      this.timers.delete(key);
      void this.releaseKey(key);
    };
    // a period is at most a week, which a timer can hold
    this.timers.set(key, setTimeout(fire, Math.max(1, inMs)));
  }

  private async quietly(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (err) {
      if (!this.aborter.signal.aborted)
        this.options.log.warn({ err }, 'queue: held messages were not let go yet');
    }
  }
}
