import type { ServerResponse } from 'node:http';
import type { Logger } from '../../lib/logger.js';
import type { RawStream, StreamSink } from '../raw-stream.js';
import type { RouteContext } from '../route.js';
import type { HttpSettings } from '../settings.js';
import type { ReplyBudget } from './reply-budget.js';

/** What streams share. */
export interface StreamCore {
  readonly settings: Pick<HttpSettings, 'replyIdleTimeoutMs' | 'streamBufferBytes'>;
  readonly replies: ReplyBudget;
  /** How many are open. */
  streams: number;
  readonly log: Logger;
  /** Monotonic milliseconds. */
  now(): number;
}

/** The exchange that a stream is the reply of. */
export interface StreamExchange extends Pick<RouteContext, 'requestId' | 'onOver'> {
  readonly operationId: string;
  /** Breaks the connection. */
  cut(): void;
}

/** At a stop, a client gets so long, in ms, to take the rest of its stream. */
const LAST_BYTES_MS = 1_000;

/** Bytes that a stream may have waiting when those of all replies together are too many. */
const LEAST_BUFFER = 64 * 1024;

/** Names and values of a stream's head, beside those of every reply. nginx holds replies back to send larger pieces unless it is told not to. */
export const STREAM_HEADERS = ['Cache-Control', 'no-cache', 'X-Accel-Buffering', 'no'] as const;

/** The body of a reply that goes on: bounds what waits for its reader, keeps it alive, and ends it. */
export class OpenStream implements StreamSink {
  /** `cut`: broken off by either side. */
  private state: 'open' | 'ended' | 'cut' = 'open';
  /** The latency of the request is the time until then, not how long the stream lives. */
  readonly openedAt: number;
  private writtenAt: number;
  private endBy = Number.POSITIVE_INFINITY;
  /** The socket's timer runs, because bytes wait. */
  private watched = false;
  /** What counts of it among all that waits. */
  private counted = 0;

  constructor(
    private readonly exchange: StreamExchange,
    private readonly core: StreamCore,
    private readonly response: ServerResponse,
    private readonly heartbeat: RawStream['heartbeat'],
  ) {
    this.openedAt = core.now();
    this.writtenAt = this.openedAt;
  }

  /** The head goes out now, not with the first chunk. */
  begin(reply: RawStream): void {
    this.core.streams += 1;
    this.response.flushHeaders();
    try {
      reply.open(this);
    } catch (error) {
      this.cut('its handler failed', error);
    }
  }

  get isOver(): boolean {
    return this.state !== 'open' || this.response.destroyed;
  }

  write(chunk: string | Buffer): void {
    if (this.isOver) return;
    const { replies, settings } = this.core;
    const limit = replies.isFull
      ? Math.min(LEAST_BUFFER, settings.streamBufferBytes)
      : settings.streamBufferBytes;
    if (this.unsentBytes(limit) > limit) {
      this.cut('its reader is too slow');
      return;
    }
    this.writtenAt = this.core.now();
    this.response.write(chunk);
    this.count(this.response.writableLength);
  }

  end(): void {
    if (this.isOver) return;
    this.state = 'ended';
    // before Node's own listener, which sets the time for idle connections
    this.response.prependOnceListener('finish', () => this.response.socket?.setTimeout(0));
    this.response.end();
  }

  /** Ends it, and cuts what its reader does not take in time. */
  endSoon(): void {
    this.end();
    this.endBy = this.core.now() + LAST_BYTES_MS;
  }

  onClose(listener: () => void): void {
    this.exchange.onOver(() => listener());
  }

  /** Its connection is gone, or took the last byte. @returns whether it had been ended */
  close(): boolean {
    this.core.streams -= 1;
    this.count(0);
    if (this.state === 'ended') return true;
    this.state = 'cut';
    return false;
  }

  /** Called by the core's sweep. */
  expire(now: number): void {
    this.count(this.response.writableLength);
    if (now > this.endBy) this.cut('its reader did not take the end');
    else {
      this.watchReader();
      if (this.heartbeat !== undefined && now - this.writtenAt >= this.heartbeat.everyMs)
        this.write(this.heartbeat.text);
    }
  }

  private count(waiting: number): void {
    this.core.replies.change(waiting - this.counted);
    this.counted = waiting;
  }

  /** Node holds back what is written during one pass of the event loop; only what the connection did not take counts. */
  private unsentBytes(limit: number): number {
    const { response } = this;
    const { socket } = response;
    if (response.writableLength > limit && socket !== null) {
      while (socket.writableCorked > 0) socket.uncork();
    }
    return response.writableLength;
  }

  /** The socket's timer begins anew whenever the client took something; a silent stream is no reader's fault. */
  private watchReader(): void {
    const { response } = this;
    const { socket } = response;
    const waiting = response.writableLength > 0;
    if (socket === null || waiting === this.watched) return;
    this.watched = waiting;
    socket.setTimeout(waiting ? this.core.settings.replyIdleTimeoutMs : 0);
    // before Node's own listener, which sets the time for idle connections
  }

  private cut(reason: string, error?: unknown): void {
    if (this.state === 'cut') return;
    this.state = 'cut';
    const { requestId, operationId: operation } = this.exchange;
    const about = { requestId, operation, unsent: this.response.writableLength };
    if (error === undefined) this.core.log.warn(about, `stream cut: ${reason}`);
    else this.core.log.error({ ...about, err: error }, `stream cut: ${reason}`);
    this.exchange.cut();
  }
}
