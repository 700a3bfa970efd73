import type { StreamSink } from '../../../http/raw-stream.js';
import { eventOf, RECONNECTED } from './event-text.js';
import { confirmationOf, type StreamKind, type Topic } from './topic.js';
import type { Listener } from './wanted-topic.js';

/** What is counted of all streams of one kind. */
export interface StreamCounts {
  open: number;
  messages: number;
}

/** Bytes that are kept until the reply has begun, which is the same turn of the event loop unless the gateway is busy. */
const EARLY_BYTES = 1024 * 1024;

/** One client's stream of events, from the first topic that is asked for to the end of its connection. */
export class EventStream implements Listener {
  private sink: StreamSink | undefined;
  private early: Buffer[] = [];
  private earlyBytes = 0;
  private ended = false;
  private closed = false;
  private topics = 0;
  private lostTopics = 0;
  private releases: (() => void)[] = [];

  constructor(
    readonly kind: StreamKind,
    private readonly counts: StreamCounts,
  ) {
    counts.open += 1;
    this.onClose(() => {
      counts.open -= 1;
    });
  }

  /** The reply has begun. */
  attach(sink: StreamSink): void {
    this.sink = sink;
    for (const event of this.early) sink.write(event);
    this.early = [];
    if (this.ended) sink.end();
  }

  confirmed(topic: Topic): void {
    this.topics += 1;
    this.write(eventOf(confirmationOf(topic, this.topics)));
  }

  message(event: Buffer): void {
    if (this.ended || this.sink?.isOver === true) return;
    this.counts.messages += 1;
    this.write(event);
  }

  lost(): void {
    this.lostTopics += 1;
  }

  restored(): void {
    this.lostTopics -= 1;
    if (this.lostTopics === 0) this.write(RECONNECTED);
  }

  end(): void {
    this.ended = true;
    this.sink?.end();
  }

  get isClosed(): boolean {
    return this.closed;
  }

  /** `release` runs when the stream is closed, after those that were registered later; at once when it is already. */
  onClose(release: () => void): void {
    if (this.closed) release();
    else this.releases.push(release);
  }

  /** The connection is done with it. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    for (const release of this.releases.reverse()) release();
    this.releases = [];
    this.early = [];
  }

  private write(event: Buffer): void {
    if (this.sink !== undefined) {
      this.sink.write(event);
      return;
    }
    this.earlyBytes += event.length;
    if (this.earlyBytes > EARLY_BYTES) this.ended = true;
    if (!this.ended) this.early.push(event);
  }
}
