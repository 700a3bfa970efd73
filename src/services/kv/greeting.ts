import type { Endpoint } from './connection.js';
import { RespError, type RespValue } from './resp-decoder.js';
import type { Command } from './resp-encoder.js';

const PING: Command = ['PING'];
const MULTI: Command = ['MULTI'];
const DISCARD: Command = ['DISCARD'];
const ROLE: Command = ['ROLE'];

/** What every new connection is asked before others may use it; PING comes first. */
export function greetingOf({ db, sentinels }: Endpoint): readonly Command[] {
  return [
    PING,
    MULTI,
    DISCARD,
    // ioredis goes on in database 0 when Redis refuses the one that was asked for
    ...(db > 0 ? [['SELECT', String(db)]] : []),
    ...(sentinels === undefined ? [] : [ROLE]),
  ];
}

/** What a server says that still reads its data, from disk or from its primary; `undefined` of another. */
export function loadingOf([ping]: readonly RespValue[]): string | undefined {
  return ping instanceof RespError && ping.text.startsWith('LOADING ') ? ping.text : undefined;
}

/** Why MULTI is refused: without it the rows of a transaction would run one by one. */
export function multiRefusalOf([, multi]: readonly RespValue[]): RespError | undefined {
  return multi instanceof RespError ? multi : undefined;
}

/** Why the connection cannot be used, by the replies to `greetingOf`; `undefined` when it can. */
export function refusalOf(
  [ping, _multi, _discard, ...others]: readonly RespValue[],
  { db, sentinels }: Endpoint,
): string | undefined {
  if (ping instanceof RespError && FATAL.test(ping.text)) return ping.text;
  const select = db > 0 ? others.shift() : undefined;
  if (select instanceof RespError) return select.text;
  const [role] = others;
  // Sentinels may name a server shortly before it takes the role; a user who may not ask is left alone
  if (sentinels === undefined || !Array.isArray(role)) return undefined;
  return String(role[0]) === sentinels.role ? undefined : `the server is no ${NAMES[sentinels.role]}`;
}

const NAMES = { master: 'primary', slave: 'replica' } as const;

/** Of the errors of PING these concern the login; others (BUSY, MISCONF, MASTERDOWN, NOPERM ...) leave commands that run. */
const FATAL = /^(NOAUTH|WRONGPASS|DENIED|ERR) /;
