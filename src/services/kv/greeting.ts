import type { Endpoint } from './connection.js';
import { RespError, type RespValue } from './resp-decoder.js';
import type { Command } from './resp-encoder.js';

const PING: Command = ['PING'];
const MULTI: Command = ['MULTI'];
const EXEC: Command = ['EXEC'];
const ROLE: Command = ['ROLE'];

/** What every new connection is asked before others may use it; PING comes first. */
export function greetingOf({ db, sentinels }: Endpoint, probe: boolean): readonly Command[] {
  return [
    PING,
    ...(probe ? [MULTI, EXEC] : []),
    // ioredis goes on in database 0 when Redis refuses the one that was asked for
    ...(db > 0 ? [['SELECT', String(db)]] : []),
    ...(sentinels === undefined ? [] : [ROLE]),
  ];
}

/** What a server says that still reads its data, from disk or from its primary; `undefined` of another. */
export function loadingOf([ping]: readonly RespValue[]): string | undefined {
  return ping instanceof RespError && ping.text.startsWith('LOADING ') ? ping.text : undefined;
}

/**
 * Why a transaction is refused: without MULTI its rows would run one by one. Where EXEC alone is refused (`isStuck`),
 * the connection stays in the transaction that the probe began, and is of no use.
 */
export function transactionRefusalOf([, multi, exec]: readonly RespValue[]): {
  readonly refusal: RespError | undefined;
  readonly isStuck: boolean;
} {
  if (multi instanceof RespError) return { refusal: multi, isStuck: false };
  return exec instanceof RespError
    ? { refusal: exec, isStuck: true }
    : { refusal: undefined, isStuck: false };
}

/** Why the connection cannot be used, by the replies to `greetingOf`; `undefined` when it can. */
export function refusalOf(
  [ping, ...rest]: readonly RespValue[],
  { db, sentinels }: Endpoint,
  probe: boolean,
): string | undefined {
  if (ping instanceof RespError && FATAL.test(ping.text)) return ping.text;
  const others = probe ? rest.slice(2) : rest;
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
