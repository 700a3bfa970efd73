import { HttpError } from '../../../http/errors.js';
import { notConnected } from '../errors.js';
import type { RespError } from '../resp/resp-decoder.js';
import { type Topic, topicKey } from './topic.js';

/** Who gets what is sent on its topics. */
export interface Listener {
  /** Redis has confirmed the topic: its messages follow. */
  confirmed(topic: Topic): void;
  message(event: Buffer): void;
  /** Messages of one of its topics are being missed. */
  lost(): void;
  /** That topic is there again. */
  restored(): void;
  /** Nothing more will come. */
  end(): void;
}

/** Redis' own refusal, such as `NOPERM`. */
export class RefusedByRedis extends Error {
  constructor(readonly reply: RespError) {
    super(reply.text);
  }
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Redis cannot do it now: what it refuses with these words it may take later. */
const PASSING = /^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN) /;

/** A topic that somebody wants, and how far Redis has been told. */
export class WantedTopic {
  readonly key: string;
  /** `lost`: Redis is to be asked, for the first time or again. */
  state: 'lost' | 'asked' | 'confirmed' = 'lost';
  private readonly listeners = new Set<Listener>();
  /** They become listeners when Redis confirms: of what it sent before they are told nothing. */
  private readonly waiting = new Map<Listener, Waiter>();

  constructor(readonly topic: Topic) {
    this.key = topicKey(topic.kind, topic.name);
  }

  get isUnwanted(): boolean {
    return this.listeners.size === 0 && this.waiting.size === 0;
  }

  /** Resolves when `listener` was told that the topic is confirmed. @throws RefusedByRedis; HttpError `backend_unavailable` */
  join(listener: Listener): Promise<void> {
    if (this.state === 'confirmed') {
      this.admit(listener);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => this.waiting.set(listener, { resolve, reject }));
  }

  leave(listener: Listener): void {
    this.waiting.get(listener)?.reject(new HttpError('client_gone'));
    this.waiting.delete(listener);
    this.listeners.delete(listener);
  }

  message(event: Buffer): void {
    for (const listener of this.listeners) listener.message(event);
  }

  confirm(): void {
    this.state = 'confirmed';
    for (const listener of this.listeners) listener.restored();
    for (const [listener, { resolve }] of this.waiting) {
      this.admit(listener);
      resolve();
    }
    this.waiting.clear();
  }

  /** Redis did not take it: for those who have it already, maybe only now. */
  refuse(reply: RespError): void {
    this.state = 'lost';
    this.turnAway(new RefusedByRedis(reply));
    if (!PASSING.test(reply.text)) this.endListeners();
  }

  /** The connection broke: listeners stay. */
  lose(cause?: unknown): void {
    if (this.state === 'confirmed') for (const listener of this.listeners) listener.lost();
    this.state = 'lost';
    this.turnAway(notConnected(cause));
  }

  end(): void {
    this.turnAway(notConnected());
    this.endListeners();
  }

  private admit(listener: Listener): void {
    this.listeners.add(listener);
    listener.confirmed(this.topic);
  }

  private turnAway(error: Error): void {
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  private endListeners(): void {
    for (const listener of this.listeners) listener.end();
    this.listeners.clear();
  }
}
