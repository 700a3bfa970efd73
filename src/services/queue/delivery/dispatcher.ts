import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffDelay } from '../../../lib/backoff.js';
import type { Logger } from '../../../lib/logger.js';
import { classifyDatabaseError } from '../../../lib/postgres.js';
import { decodeTokens, type Token } from '../message/message.js';
import type { Channel, ConsumeMessage } from '../rabbitmq/client.js';
import { type Settled, settle } from './settle.js';
import { Slots } from './slots.js';
import type { Settlement } from './worker.js';

export interface DispatcherOptions {
  /** The queues that tokens are taken from, each with what is done with them. */
  readonly sources: readonly Source[];
  /** The queue of tokens that no queue took. */
  readonly unrouted: string;
  /** Tokens of each source that are worked on at once, beside those whose attempts wait. */
  readonly concurrency: number;
  /** Resolves when a token is safe in the dead-letter queue. */
  readonly bury: (token: Token) => Promise<void>;
  /** Resolves when a token is in the work queue again. */
  readonly again: (token: Token, signal: AbortSignal) => Promise<void>;
  /** Declares the topology again: a queue of it is gone. */
  readonly mend: (reason: string) => void;
  /** Rejects while messages cannot be claimed. */
  readonly checkStore: () => Promise<void>;
  readonly log: Logger;
}

export interface Source {
  readonly queue: string;
  /** `onWaiting` is called when others may go on meanwhile; what is settled then is no longer RabbitMQ's matter. */
  readonly process: (token: Token, signal: AbortSignal, onWaiting: () => void) => Promise<Settlement>;
}

/**
 * Takes tokens from its queues and has them processed, a bounded number at once. A message with tokens is acknowledged
 * (or rejected into the dead-letter exchange) when processing of all has resolved, and goes back to RabbitMQ when it
 * rejects for one: those of the others that have served do so again without effect. While the store is away it takes none.
 * A token whose attempt waits counts as served: Postgres has the claim, whose lease ends with this gateway, and the sweeper
 * then finds the message.
 */
export class Dispatcher {
  private channel: Channel | undefined;
  private consumerTags: string[] = [];
  private readonly inFlight = new Set<Promise<void>>();
  private readonly aborter = new AbortController();
  private readonly slots: ReadonlyMap<Source, Slots>;
  private stopping = false;
  private storeDown = false;
  private readonly ending = new AbortController();

  constructor(private readonly options: DispatcherOptions) {
    // every attempt in flight listens
    setMaxListeners(0, this.aborter.signal);
    this.slots = new Map(options.sources.map((source) => [source, new Slots(options.concurrency)]));
  }

  /** To be called with each new channel, after the topology was declared. */
  async attach(channel: Channel): Promise<void> {
    const { unrouted, concurrency, mend } = this.options;
    // as many messages as slots: should each have one slow token left, the other slots still get work
    await channel.prefetch(concurrency);
    await channel.consume(unrouted, (message) => {
      // the sweeper gives such a token's message another one
      if (message !== null) settle(channel, message, 'served');
      mend(message === null ? 'the queue of unrouted tokens was deleted' : 'a token had no queue to go to');
    });
    this.channel = channel;
    if (!this.storeDown) await this.consume(channel);
  }

  /** To be called when the channel is lost. What is in flight ends; its tokens come again and are found out of date. */
  detach(): void {
    this.channel = undefined;
    this.consumerTags = [];
  }

  /** Takes no more tokens, lets attempts end for `graceMs`, interrupts the rest, whose tokens go back. */
  async stop(graceMs: number): Promise<void> {
    this.stopping = true;
    this.ending.abort();
    for (const slots of this.slots.values()) slots.close();
    await this.cancel();
    const interrupt = setTimeout(() => this.aborter.abort(), graceMs);
    while (this.inFlight.size > 0) await Promise.allSettled(this.inFlight);
    clearTimeout(interrupt);
  }

  private async consume(channel: Channel): Promise<void> {
    for (const source of this.options.sources) {
      if (this.stopping) return;
      const { consumerTag } = await channel.consume(source.queue, (message) => {
        if (message === null) this.options.mend(`the queue ${source.queue} was deleted`);
        else this.take(channel, message, source);
      });
      if (this.channel === channel) this.consumerTags.push(consumerTag);
    }
  }

  private async cancel(): Promise<void> {
    const { channel, consumerTags } = this;
    this.consumerTags = [];
    // fails only with the channel, and then there is no consumer either
    for (const tag of consumerTags) await channel?.cancel(tag).catch(() => undefined);
  }

  private take(channel: Channel, message: ConsumeMessage, source: Source): void {
    if (this.stopping || this.storeDown) {
      settle(channel, message, 'again');
      return;
    }
    const tokens = decodeTokens(message.content);
    if (tokens === undefined) {
      this.options.log.error(
        { bytes: message.content.length },
        'queue: something else than tokens was in the queue',
      );
      settle(channel, message, 'served');
      return;
    }
    this.track(this.processAll(tokens, source).then((settled) => settle(channel, message, settled)));
  }

  private async processAll(tokens: readonly Token[], source: Source): Promise<Settled> {
    const [first] = tokens;
    if (tokens.length === 1 && first !== undefined) return this.processInSlot(first, source);
    const each = tokens.map(async (token) => {
      const settled = await this.processInSlot(token, source);
      // the others must not be dead-lettered with it
      return settled === 'dead' ? this.buryAlone(token) : settled;
    });
    return (await Promise.all(each)).includes('again') ? 'again' : 'served';
  }

  private async buryAlone(token: Token): Promise<Settled> {
    try {
      await this.options.bury(token);
      return 'served';
    } catch (err) {
      this.options.log.warn({ err, id: token.id }, 'queue: a dead token goes back');
      return 'again';
    }
  }

  private async processInSlot(token: Token, source: Source): Promise<Settled> {
    const slots = this.slots.get(source) as Slots;
    if (!(await slots.enter())) return 'again';
    return new Promise((resolve) => {
      let waits = false;
      const onWaiting = () => {
        waits = true;
        slots.leave();
        this.track(work);
        resolve('served');
      };
      const work = this.process(token, source, onWaiting).then(async (settled) => {
        if (waits) return this.settleLate(token, settled);
        slots.leave();
        resolve(settled);
      });
    });
  }

  private async process(token: Token, source: Source, onWaiting: () => void): Promise<Settled> {
    if (this.stopping || this.storeDown) return 'again';
    try {
      return await source.process(token, this.aborter.signal, onWaiting);
    } catch (err) {
      if (!this.stopping) {
        this.options.log.warn({ err, id: token.id }, 'queue: a token goes back');
        await this.pauseUntilStoreIsBack(classifyDatabaseError(err).kind);
      }
      return 'again';
    }
  }

  /** RabbitMQ has forgotten the token: what would have become of it is done with a new one. */
  private async settleLate(token: Token, settled: Settled): Promise<void> {
    const { bury, again, log } = this.options;
    try {
      if (settled === 'dead') await bury(token);
      else if (settled === 'again') await again(token, this.aborter.signal);
    } catch (err) {
      log.warn({ err, id: token.id }, 'queue: a message is left to the sweeper');
    }
  }

  private track(work: Promise<void>): void {
    const tracked = work.finally(() => this.inFlight.delete(tracked));
    this.inFlight.add(tracked);
  }

  /** Otherwise a token that cannot be claimed would come again at once, and again. */
  private async pauseUntilStoreIsBack(kind: ReturnType<typeof classifyDatabaseError>['kind']): Promise<void> {
    if (this.storeDown) return;
    this.storeDown = true;
    await this.cancel();
    this.options.log.warn({ kind }, 'queue: no deliveries until the database answers');
    void this.resumeWhenStoreIsBack();
  }

  private async resumeWhenStoreIsBack(): Promise<void> {
    for (let failures = 0; ; failures++) {
      await sleep(backoffDelay(failures), undefined, { signal: this.ending.signal }).catch(() => undefined);
      if (this.stopping) return;
      try {
        await this.options.checkStore();
        this.storeDown = false;
        if (this.channel !== undefined) await this.consume(this.channel);
        this.options.log.info('queue: deliveries go on');
        return;
      } catch (err) {
        this.options.log.debug({ err }, 'queue: the database is still away');
      }
    }
  }
}
