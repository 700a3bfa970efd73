import type { Row } from '../commands/commands.js';
import { keyword } from '../resp/keyword.js';
import {
  anyOf,
  concatenation,
  everywhere,
  first,
  type Join,
  oneSuccess,
  sum,
  sumOfPairs,
  union,
  unlessFailed,
} from './joins.js';

const SAME = unlessFailed(first);

/**
 * Commands without a key that concern every primary, and what their replies make together. All others without a key
 * go to one node, INFO, TIME and PING too.
 */
const BY_NAME: ReadonlyMap<string, Join> = new Map([
  ['DBSIZE', unlessFailed(sum)],
  ['KEYS', unlessFailed(concatenation)],
  ['RANDOMKEY', unlessFailed(anyOf)],
  ['FLUSHALL', SAME],
  ['FLUSHDB', SAME],
]);

const BY_SUBCOMMAND: Readonly<Record<string, ReadonlyMap<string, Join>>> = {
  SCRIPT: new Map([
    ['LOAD', SAME],
    ['FLUSH', SAME],
    ['EXISTS', unlessFailed(everywhere)],
    ['KILL', oneSuccess],
  ]),
  FUNCTION: new Map([
    ['LOAD', SAME],
    ['DELETE', SAME],
    ['FLUSH', SAME],
    ['RESTORE', SAME],
    ['KILL', oneSuccess],
  ]),
  PUBSUB: new Map([
    ['CHANNELS', unlessFailed(union)],
    ['NUMSUB', unlessFailed(sumOfPairs)],
    ['NUMPAT', unlessFailed(sum)],
    ['SHARDCHANNELS', unlessFailed(union)],
    ['SHARDNUMSUB', unlessFailed(sumOfPairs)],
  ]),
  ACL: new Map([
    ['SETUSER', SAME],
    ['DELUSER', SAME],
  ]),
  CONFIG: new Map([
    ['SET', SAME],
    ['RESETSTAT', SAME],
  ]),
  LATENCY: new Map([['RESET', unlessFailed(sum)]]),
  MEMORY: new Map([['PURGE', SAME]]),
  SLOWLOG: new Map([['RESET', SAME]]),
};

/** How the replies of all primaries make one; `undefined` for a command that one node can answer. */
export function joinOfAll({ rule, command }: Row): Join | undefined {
  return BY_NAME.get(rule.name) ?? BY_SUBCOMMAND[rule.name]?.get(keyword(command, 1));
}
