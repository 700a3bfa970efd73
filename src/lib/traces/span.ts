import type { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';

/** As OTLP numbers them. */
export const SPAN_KINDS = { server: 2, client: 3, producer: 4 } as const;
export type SpanKind = keyof typeof SPAN_KINDS;

export type Attributes = Record<string, string | number | boolean>;

/** A trace, and the span in it that others begin below. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
}

const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/;

/** What a header `traceparent` (W3C Trace Context) says; `undefined` for none that is valid. */
export function readTraceparent(
  header: string | undefined,
): (TraceParent & { sampled: boolean }) | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(header ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined || header?.startsWith('ff'))
    return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** What spans of one gateway share. */
export interface SpanHome {
  readonly current: AsyncLocalStorage<Span>;
  /** Takes a span that has ended. */
  take(span: Span): void;
}

const hex = (bytes: number) => randomBytes(bytes).toString('hex');

/** Something that took time, as a part of a trace. */
export class Span implements TraceParent {
  readonly traceId: string;
  readonly spanId = hex(8);
  readonly attributes: Attributes = {};
  /** Unix time in ms, with fractions. */
  readonly startedAt = now();
  endedAt = 0;
  /** What went wrong, in a word. */
  error: string | undefined;

  constructor(
    private readonly home: SpanHome,
    public name: string,
    readonly kind: SpanKind,
    readonly parent: TraceParent | undefined,
  ) {
    this.traceId = parent?.traceId ?? hex(16);
  }

  /** For the next one down the way. */
  get traceparent(): string {
    return `00-${this.traceId}-${this.spanId}-01`;
  }

  child(name: string, kind: SpanKind, attributes: Attributes = {}): Span {
    const span = new Span(this.home, name, kind, this);
    Object.assign(span.attributes, attributes);
    return span;
  }

  /** Spans that begin in `work`, and in what it awaits, are below this one. */
  run<T>(work: () => T): T {
    return this.home.current.run(this, work);
  }

  end(): void {
    if (this.endedAt > 0) return;
    this.endedAt = now();
    this.home.take(this);
  }
}

const now = () => performance.timeOrigin + performance.now();
