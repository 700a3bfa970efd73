import type { Argument } from '../resp/resp-encoder.js';

/** What a stream listens to: named channels, channels that match a pattern, or every command that Redis runs. */
export type StreamKind = 'subscribe' | 'psubscribe' | 'monitor';

export const STREAM_KINDS: readonly StreamKind[] = ['subscribe', 'psubscribe', 'monitor'];

/** One channel, one pattern, or the monitor, whose name is empty. */
export interface Topic {
  readonly kind: StreamKind;
  readonly name: Argument;
}

/** The same for topics whose names are the same bytes. */
export function topicKey(kind: StreamKind, name: Argument): string {
  const bytes = typeof name === 'string' ? Buffer.from(name) : name;
  return `${kind}:${bytes.toString('latin1')}`;
}

/** What a stream says first of a topic. @param count topics of this stream until now, as Redis counts those of a connection */
export function confirmationOf({ kind, name }: Topic, count: number): string {
  return kind === 'monitor' ? '"OK"' : `${kind},${name.toString()},${count}`;
}
