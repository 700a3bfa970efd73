import { AsyncLocalStorage } from 'node:async_hooks';
import type { ReleaseRegistry } from '../lifecycle.js';
import type { Logger } from '../logger.js';
import type { MetricRegistry } from '../metric-source.js';
import { otlpText } from './otlp.js';
import { type Attributes, readTraceparent, Span, type SpanHome, type SpanKind } from './span.js';
import type { TraceSettings } from './trace-settings.js';

/** Spans that wait to be sent; one more is dropped. */
const MOST_WAITING = 4_096;
/** Spans of one request to the collector. */
const BATCH = 512;
const FLUSH_MS = 2_000;
/** The collector has so long, in ms. */
const SEND_MS = 5_000;
/** A collector that takes nothing is told of once in so long, in ms. */
const COMPLAINT_MS = 60_000;

export interface TracerOptions {
  /** Attributes of all spans beside the name of the service. */
  readonly resource: Attributes;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
  readonly metrics: MetricRegistry;
  /** From 0 to below 1. */
  readonly random?: () => number;
}

/** @returns `undefined` where no traces are wanted: whoever has none pays nothing */
export function openTracer(settings: TraceSettings, options: TracerOptions): Tracer | undefined {
  const { endpoint } = settings;
  return endpoint === null ? undefined : new Tracer({ ...settings, endpoint }, options);
}

/** Makes spans and sends those that have ended, in the background. A collector that is away costs spans and nothing else. */
export class Tracer implements SpanHome {
  readonly current = new AsyncLocalStorage<Span>();
  private waiting: Span[] = [];
  private sending: Promise<void> = Promise.resolve();
  private readonly counts = { sent: 0, dropped: 0 };
  private complainedAt = Number.NEGATIVE_INFINITY;
  private readonly headers: Record<string, string>;
  private readonly resource: Attributes;
  private readonly random: () => number;

  constructor(
    private readonly settings: TraceSettings & { readonly endpoint: string },
    private readonly options: TracerOptions,
  ) {
    const { lifecycle, metrics, resource, random = Math.random } = options;
    this.random = random;
    this.resource = { 'service.name': settings.serviceName, ...resource };
    this.headers = { 'content-type': 'application/json', ...headersOf(settings.headers) };
    const timer = setInterval(() => this.flush(), FLUSH_MS);
    timer.unref();
    lifecycle.onStop('traces', async () => {
      clearInterval(timer);
      this.flush();
      await this.sending;
    });
    metrics.add({
      name: 'portico_traces_spans_total',
      help: 'Spans by what became of them: sent, or dropped because the collector did not take them.',
      type: 'counter',
      collect: () => Object.entries(this.counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
    });
  }

  /** A span at the edge: below what the header says, else a new trace for a share of them. */
  root(name: string, kind: SpanKind, traceparent: string | string[] | undefined): Span | undefined {
    const parent = readTraceparent(typeof traceparent === 'string' ? traceparent : undefined);
    const sampled = parent === undefined ? this.random() < this.settings.sample : parent.sampled;
    return sampled ? new Span(this, name, kind, parent) : undefined;
  }

  /** Does `work` in a span below the current one; where there is none, without. */
  async within<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
    const span = this.current.getStore()?.child(name, 'client', attributes);
    if (span === undefined) return work();
    try {
      return await span.run(work);
    } catch (error) {
      span.error = wordOf(error);
      throw error;
    } finally {
      span.end();
    }
  }

  take(span: Span): void {
    if (this.waiting.length >= MOST_WAITING) this.counts.dropped += 1;
    else if (this.waiting.push(span) === BATCH) this.flush();
  }

  private flush(): void {
    if (this.waiting.length === 0) return;
    this.sending = this.sending.then(() => this.sendWaiting());
  }

  private async sendWaiting(): Promise<void> {
    const spans = this.waiting.splice(0, BATCH);
    if (spans.length === 0) return;
    const reason = await this.send(otlpText(spans, this.resource));
    if (reason === undefined) this.counts.sent += spans.length;
    else this.complain(reason, spans.length);
    if (this.waiting.length >= BATCH) this.flush();
  }

  /** @returns why not, for the log */
  private async send(body: string): Promise<string | undefined> {
    const { endpoint } = this.settings;
    const signal = AbortSignal.timeout(SEND_MS);
    try {
      // nothing that is sent here begins a span
      const reply = await this.current.exit(() =>
        fetch(endpoint, { method: 'POST', headers: this.headers, body, signal, redirect: 'error' }),
      );
      await reply.body?.cancel();
      return reply.ok ? undefined : `status ${reply.status}`;
    } catch (error) {
      return wordOf((error as Error).cause ?? error);
    }
  }

  private complain(reason: string, spans: number): void {
    this.counts.dropped += spans;
    if (performance.now() - this.complainedAt < COMPLAINT_MS) return;
    this.complainedAt = performance.now();
    this.options.log.warn({ reason, spans }, 'traces: the collector takes no spans; they are dropped');
  }
}

function headersOf(text: string | null): Record<string, string> {
  const pairs = (text ?? '').split(',').filter(Boolean);
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

/** Of an error its code or kind: its text may quote what a client sent. */
export function wordOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' ? name : 'error';
}
