import type { KafkaMessage } from './client.js';
import type { Message } from './schemas.js';

type HeaderValue = Buffer | string | (Buffer | string)[] | undefined;

/** Header lists are objects in kafkajs: the order of names that look like numbers is lost, repeated names keep all values. */
export function toKafkaHeaders(
  headers: readonly { readonly key: string; readonly value: string }[],
): Record<string, string | string[]> {
  // without a prototype: a header may be called `__proto__`
  const named: Record<string, string | string[]> = Object.create(null);
  for (const { key, value } of headers) {
    const before = named[key];
    if (before === undefined) named[key] = value;
    else if (Array.isArray(before)) before.push(value);
    else named[key] = [before, value];
  }
  return named;
}

/** A record as the contract shows it: absent key, value and header values read as "", bytes as UTF-8. */
export function toMessage(topic: string, partition: number, record: KafkaMessage): Message {
  return {
    topic,
    partition,
    offset: Number(record.offset),
    timestamp: Number(record.timestamp),
    key: text(record.key),
    value: text(record.value),
    headers: headerList(record.headers),
  };
}

/** Bytes of a record that count towards a reply's limit. */
export function sizeOf(record: KafkaMessage): number {
  return (record.key?.length ?? 0) + (record.value?.length ?? 0);
}

function headerList(headers: Record<string, HeaderValue> | undefined): Message['headers'] {
  const list: Message['headers'] = [];
  if (headers === undefined) return list;
  for (const key of Object.keys(headers)) {
    const value = headers[key];
    // kafkajs collects them in a plain object and takes what that inherits (`constructor`) for an earlier value
    const values = Array.isArray(value) ? value.filter((one) => Buffer.isBuffer(one)) : [value];
    for (const one of values) list.push({ key, value: text(one) });
  }
  return list;
}

function text(value: Buffer | string | null | undefined): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : value.toString('utf8');
}
