import { RespStatus, type RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';
import { eventOf, singleLine } from './event-text.js';
import { type Topic, topicKey } from './topic.js';

/** Something that Redis sent unasked. */
export interface Push {
  /** Key of the topic that it belongs to. */
  readonly topic: string;
  readonly event: Buffer;
}

/** How Redis is told what to send on a connection, and how what it sends is told from replies. */
export interface FeedProtocol {
  /** Has one reply. */
  begin(topic: Topic): Command;
  /** Has one reply; `undefined` where only closing the connection ends it. */
  end(topic: Topic): Command | undefined;
  readonly ping: Command;
  /** `undefined` of a reply. */
  read(value: RespValue): Push | undefined;
}

/** A sign of life that the monitor can leave out. */
const PULSE: Command = ['PING', 'portico:pulse'];

/**
 * Channels and patterns. In RESP2 messages are arrays like the replies to these commands, told by their first item:
 * https://redis.io/docs/latest/develop/pubsub/#format-of-pushed-messages
 */
export const PUBSUB: FeedProtocol = {
  begin: ({ kind, name }) => [kind.toUpperCase(), name],
  end: ({ kind, name }) => [kind === 'subscribe' ? 'UNSUBSCRIBE' : 'PUNSUBSCRIBE', name],
  ping: PULSE,
  read: (value) => {
    if (!Array.isArray(value)) return undefined;
    const [type, ...names] = value.map(textOf);
    const isPattern = type === 'pmessage';
    if (type !== 'message' && !isPattern) return undefined;
    const payload = names.pop() as string;
    return {
      topic: topicKey(isPattern ? 'psubscribe' : 'subscribe', value[1] as Buffer),
      event: eventOf(`${type},${names.join(',')},${singleLine(payload)}`),
    };
  },
};

/** Bytes that are not UTF-8 become U+FFFD. */
function textOf(value: RespValue): string {
  return value instanceof Buffer ? value.toString('utf8') : '';
}

/** A topic that nobody has. */
const HIDDEN: Push = { topic: '', event: Buffer.alloc(0) };
/** Lines are `<seconds> [<database> <address>] "<command>" ...` with quotes inside escaped. */
const OWN_OR_LOGIN = /^\d+\.\d+ \[\d+ .*?\] "(?:PING" "portico:pulse"$|auth"|hello")/i;
const ZERO = 48;
const NINE = 57;

/**
 * Every command that Redis runs, as the text of its line. Logins are left out: servers before 6.2 may show what newer
 * ones redact, and Portico checks passwords every second. So are the signs of life of connections like this one.
 */
export const MONITOR: FeedProtocol = {
  begin: () => ['MONITOR'],
  end: () => undefined,
  ping: PULSE,
  read: (value) => {
    if (!(value instanceof RespStatus) || !isDigit(value.bytes[0])) return undefined;
    const line = value.bytes.toString('utf8');
    return OWN_OR_LOGIN.test(line) ? HIDDEN : { topic: MONITOR_KEY, event: eventOf(line) };
  },
};

const MONITOR_KEY = topicKey('monitor', '');

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}
