import { HttpError } from '../../../http/errors.js';
import { portOf } from '../../../lib/outbound/address-guard.js';

/** Judges a host before any look-up: why it may not be delivered to, or `undefined`. */
export interface Guard {
  judgeHost(hostname: string, port: number): string | undefined;
}

/** Longer URLs are refused: destinations would, and it is stored with each message and signed with each delivery. */
const MAX_LENGTH = 16_384;

/** Query keys that are meant for the queue service and not for the destination. */
const OWN_KEY = /^(qstash_token$|upstash-|service-)/i;

export interface CutTarget {
  /** The destination as sent, without the service's own query keys. */
  readonly destination: string;
  /** The service's own query keys with decoded values, names in lower case. */
  readonly settings: ReadonlyMap<string, string>;
}

/**
 * Cuts a destination from the raw rest of a request target (`/https://example.com/a?b=c`): the query belongs to the
 * destination and keeps its order and encoding. A proxy that merged slashes (`https:/example.com`) and a destination
 * that was escaped as a whole (`https%3A%2F%2F...`, decoded once) are understood.
 */
export function cutTarget(target: string): CutTarget {
  const rest = target.startsWith('/') ? target.slice(1) : target;
  const question = rest.indexOf('?');
  const path = repairScheme(question < 0 ? rest : rest.slice(0, question));
  const settings = new Map<string, string>();
  if (question < 0) return { destination: path, settings };
  const kept = rest
    .slice(question + 1)
    .split('&')
    .filter((pair) => {
      const equals = pair.indexOf('=');
      const key = decoded(equals < 0 ? pair : pair.slice(0, equals));
      if (!OWN_KEY.test(key)) return true;
      settings.set(key.toLowerCase(), equals < 0 ? '' : decoded(pair.slice(equals + 1).replaceAll('+', ' ')));
      return false;
    });
  const query = kept.length === 0 && settings.size > 0 ? '' : `?${kept.join('&')}`;
  return { destination: path + query, settings };
}

/**
 * Checks that `text` is a URL which messages may be sent to; `what` names it in errors. Names are not resolved: one
 * that does not exist (yet) is a failed delivery.
 * @throws HttpError 400
 */
export function checkDestination(text: string, what: string, guard: Guard): URL {
  const refuse = (reason: string) => new HttpError('invalid_request', `${what} ${reason}`);
  if (text.length > MAX_LENGTH) throw refuse(`is longer than ${MAX_LENGTH} characters`);
  if (/[^\x21-\x7e]/.test(text))
    throw refuse('holds blanks or other characters that must be percent-encoded');
  const url = /^https?:\/\/[^/?#]/i.test(text) ? parsed(text) : undefined;
  if (url === undefined) throw refuse(problemOf(text));
  const refusal = guard.judgeHost(url.hostname, portOf(url));
  if (refusal !== undefined)
    throw refuse(`may not be delivered to: ${refusal}; allow it with queue.allowedDestinations`);
  return url;
}

/** One parse: `URL.canParse` before it would be a second. */
function parsed(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

function problemOf(text: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) return 'is not an absolute URL (http:// or https://)';
  if (scheme !== 'http' && scheme !== 'https')
    return `has the scheme ${scheme}: only http and https are delivered to`;
  return 'is not a valid URL';
}

function repairScheme(path: string): string {
  // Go's url.PathEscape leaves the colon as it is
  const unescaped = /^https?(%3a|:%2f)/i.test(path) ? decoded(path) : path;
  return unescaped.replace(/^(https?:)\/(?!\/)/i, '$1//');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
