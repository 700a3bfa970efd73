import { type IncomingHttpHeaders, validateHeaderName, validateHeaderValue } from 'node:http';
import { HttpError } from '../../../http/errors.js';
import { isTransportHeader } from '../../../lib/outbound/outbound.js';
import { canonicalHeaderName, type HeaderMap } from '../message/message.js';
import type { Controls } from './control-headers.js';

/** Headers of a publish that describe its body and so go with it unasked. */
const BODY_HEADERS = ['content-type', 'content-encoding', 'content-language'] as const;

/** Never forwarded by `Header-Forward`: they are about the way to Portico or open its doors. */
const NOT_FORWARDED = /^(authorization|cookie|forwarded|via|x-forwarded-.*|x-real-ip|upstash-.*|service-.*)$/;

/** Those of a request's headers that a delivery may ever get; what a schedule keeps of its creator's request. */
export function forwardable(incoming: IncomingHttpHeaders): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name in incoming) {
    const value = incoming[name];
    if (value === undefined || NOT_FORWARDED.test(name) || isTransportHeader(name)) continue;
    kept[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return kept;
}

function describing(incoming: IncomingHttpHeaders): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of BODY_HEADERS) {
    const value = incoming[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}

/** The headers of a delivery: those of the body, all others if `everything`, and what is marked for it, which wins. */
export function deliveredHeaders(
  controls: Controls,
  incoming: IncomingHttpHeaders,
  everything: boolean,
): HeaderMap {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(everything ? forwardable(incoming) : describing(incoming))) {
    // Node has checked those of a request, but not those of an entry in a batch
    if (!isHeader(name, value))
      throw new HttpError('invalid_request', `${name}: holds characters that cannot stand in a header`);
    headers[canonicalHeaderName(name)] = value;
  }
  return markedHeaders(controls, 'forward-', headers);
}

/**
 * The headers behind `start`, such as `forward-`. Transport headers are dropped rather than refused: programs that pass
 * on all headers of a request send them unthinkingly.
 * @param headers where they are put
 */
export function markedHeaders(
  controls: Controls,
  start: string,
  headers: Record<string, string> = {},
): HeaderMap {
  controls.eachBelow(start, (name, value) => {
    if (!isHeader(name, value))
      throw controls.refusal(start + name, 'holds characters that cannot stand in a header');
    if (!isTransportHeader(name)) headers[canonicalHeaderName(name)] = value;
  });
  return headers;
}

function isHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}
