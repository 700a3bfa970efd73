import { type Attributes, SPAN_KINDS, type Span } from './span.js';

/** OTLP's status of a span that failed. */
const ERROR = 2;

/** Spans as an OTLP request in JSON (opentelemetry-proto 1.x, `ExportTraceServiceRequest`). */
export function otlpText(spans: readonly Span[], resource: Attributes): string {
  const scopeSpans = [{ scope: { name: 'portico' }, spans: spans.map(spanOf) }];
  return JSON.stringify({ resourceSpans: [{ resource: { attributes: listOf(resource) }, scopeSpans }] });
}

function spanOf({ traceId, spanId, parent, name, kind, startedAt, endedAt, attributes, error }: Span) {
  return {
    traceId,
    spanId,
    ...(parent === undefined ? {} : { parentSpanId: parent.spanId }),
    name,
    kind: SPAN_KINDS[kind],
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: listOf(attributes),
    ...(error === undefined ? {} : { status: { code: ERROR, message: error } }),
  };
}

function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n);
}

function listOf(attributes: Attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function anyValue(value: string | number | boolean) {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
