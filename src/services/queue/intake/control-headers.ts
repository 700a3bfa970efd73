import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { HttpError } from '../../../http/errors.js';
import type { HeaderPrefix } from '../message/message.js';

const PREFIXES = ['upstash-', 'service-'] as const;

/** What Portico or the hosted service itself adds to a delivery, and what SDKs tell about themselves: no instructions. */
const NO_INSTRUCTION = /^(telemetry-.*|message-id|retried|signature|caller-ip|region|topic-name)$/;

/** What cannot stand in a header. Within a loop it would be made anew for each of its rounds. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
const NO_TEXT = /[\x00-\x08\x0a-\x1f\x7f]|\p{Surrogate}/u;

/** Headers of a delivery go on byte for byte. */
const FORWARDED = /^[a-z]+-((failure-)?callback-)?forward-/;

/**
 * A request's headers with its instructions as text. Node reads each byte of a header as one character, and senders write
 * names (labels, keys, ids) as UTF-8; what is none stays as it is.
 */
export function asText(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  let texts: IncomingHttpHeaders | undefined;
  for (const name in headers) {
    const value = headers[name];
    if (typeof value !== 'string' || !PREFIXES.some((prefix) => name.startsWith(prefix))) continue;
    if (!/[\x80-\xff]/.test(value) || FORWARDED.test(name)) continue;
    const bytes = Buffer.from(value, 'latin1');
    if (!isUtf8(bytes)) continue;
    texts ??= { ...headers };
    texts[name] = bytes.toString('utf8');
  }
  return texts ?? headers;
}

interface Control {
  /** The whole name, as the sender gave it. */
  readonly sentAs: string;
  readonly value: string;
}

/** The instructions that came with a publish (`Upstash-*` and `Service-*`), by their name without prefix in lower case. */
export class Controls {
  private readonly controls = new Map<string, Control>();
  private readonly seen = new Set<string>();

  /**
   * A header wins over the query key of the same name, that over the URL group's default; within one place `Service-`
   * (the contract's own name) wins over `Upstash-`.
   */
  constructor(
    headers: IncomingHttpHeaders,
    query: ReadonlyMap<string, string>,
    defaults: Readonly<Record<string, string>> = {},
  ) {
    for (const prefix of PREFIXES) {
      for (const [name, value] of Object.entries(defaults)) this.take(prefix, name, value);
    }
    // how the group's owner spelled its defaults says nothing about the sender
    this.seen.clear();
    for (const prefix of PREFIXES) {
      for (const [name, value] of query) this.take(prefix, name, value);
    }
    for (const prefix of PREFIXES) {
      for (const name in headers) {
        const value = headers[name];
        if (value !== undefined) this.take(prefix, name, Array.isArray(value) ? value.join(', ') : value);
      }
    }
  }

  /** Under which prefix they came; `undefined` when there was none at all. */
  get prefix(): HeaderPrefix | undefined {
    if (this.seen.has('upstash-')) return 'Upstash';
    return this.seen.has('service-') ? 'Service' : undefined;
  }

  get names(): Iterable<string> {
    return this.controls.keys();
  }

  /** All of them by the names under which they were sent, for a `Controls` that is made later. */
  get sent(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.controls.values()].map(({ sentAs, value }) => [sentAs, value]));
  }

  has(name: string): boolean {
    return this.controls.has(name);
  }

  get(name: string): string | undefined {
    return this.controls.get(name)?.value;
  }

  /** Tells names that start with `start`, cut off, and their values. As a generator it took 0.4 MB for 1,000 of them. */
  eachBelow(start: string, told: (name: string, value: string) => void): void {
    this.controls.forEach(({ value }, name) => {
      if (name.startsWith(start)) told(name.slice(start.length), value);
    });
  }

  /** A 400 that names the header (or query key) as it was sent. */
  refusal(name: string, reason: string): HttpError {
    return new HttpError('invalid_request', `${this.controls.get(name)?.sentAs ?? name}: ${reason}`);
  }

  private take(prefix: (typeof PREFIXES)[number], name: string, value: string): void {
    if (!name.startsWith(prefix)) return;
    this.seen.add(prefix);
    const bare = name.slice(prefix.length);
    if (NO_TEXT.test(value))
      throw new HttpError('invalid_request', `${name}: holds characters that cannot stand in a header`);
    if (!NO_INSTRUCTION.test(bare)) this.controls.set(bare, { sentAs: name, value });
  }
}
