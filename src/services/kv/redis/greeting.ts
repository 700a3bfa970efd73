import { isPassing } from '../resp/passing.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';
import type { Endpoint } from './connection.js';

const PING: Command = ['PING'];
const ROLE: Command = ['ROLE'];

/** What every new connection is asked before others may use it; PING comes first. */
export function greetingOf({ db, sentinels }: Endpoint): readonly Command[] {
  return [
    PING,
    // ioredis goes on in database 0 when Redis refuses the one that was asked for
    ...(db > 0 ? [['SELECT', String(db)]] : []),
    ...(sentinels === undefined ? [] : [ROLE]),
  ];
}

/**
 * Why the connection cannot be used yet, by the replies to `greetingOf`: the server still reads its data, or cannot tell
 * now which database and server this is. `undefined` when it can, or never will.
 */
export function delayOf([ping, ...others]: readonly RespValue[]): string | undefined {
  if (ping instanceof RespError && ping.text.startsWith('LOADING ')) return ping.text;
  return others.find((reply): reply is RespError => reply instanceof RespError && isPassing(reply))?.text;
}

/** Why the connection cannot be used, by the replies to `greetingOf`; `undefined` when it can. */
export function refusalOf(
  [ping, ...others]: readonly RespValue[],
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

/**
 * Whether transactions are allowed is found out by an empty one. DISCARD ends it where EXEC alone is refused (servers
 * before 6.2, or one that has it renamed); else it is refused itself.
 */
export const TRANSACTION_PROBE: readonly Command[] = [['MULTI'], ['EXEC'], ['DISCARD']];

/**
 * Why a transaction is refused, by the replies to the probe: without MULTI its rows would run one by one. `isStuck`: the
 * connection stays in the transaction that the probe began, and is of no use.
 */
export function transactionRefusalOf([multi, exec, discard]: readonly RespValue[]): {
  readonly refusal: RespError | undefined;
  readonly isStuck: boolean;
} {
  if (multi instanceof RespError) return { refusal: multi, isStuck: false };
  if (!(exec instanceof RespError)) return { refusal: undefined, isStuck: false };
  const isEnded = exec.text.startsWith('EXECABORT ') || !(discard instanceof RespError);
  return { refusal: exec, isStuck: !isEnded };
}
