import { keyword } from '../resp/keyword.js';
import type { Command } from '../resp/resp-encoder.js';
import type { CommandFacts } from './command-table.js';
import { refusedConfig } from './config-command.js';

/** Why a command is refused, without its class word; `undefined` when it may run. Reads arguments only. */
export type Inspect = (command: Command) => string | undefined;

/** They change the state of the connection that all requests share, or turn it into a stream. */
const CONNECTION_STATE = `AUTH HELLO RESET QUIT SELECT CLIENT READONLY READWRITE ASKING MULTI EXEC DISCARD WATCH UNWATCH
  SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE SYNC PSYNC REPLCONF`;

/** As commands they would turn the shared connection into a stream. */
const STREAMS = 'SUBSCRIBE PSUBSCRIBE MONITOR';

/** Redis takes them for a web page's request and closes the connection. */
const NO_COMMANDS = 'POST HOST:';

/** Every request on the connection would wait behind them. */
const BLOCKING = 'BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP WAIT WAITAOF';

/** They act on the server or its host rather than on data, or make it connect elsewhere. */
const SERVER = `SHUTDOWN DEBUG MODULE MIGRATE REPLICAOF SLAVEOF FAILOVER CLUSTER SENTINEL SAVE BGSAVE BGREWRITEAOF
  PFDEBUG PFSELFTEST RESTORE-ASKING`;

const REASONS: readonly [string, string][] = [
  [CONNECTION_STATE, 'it acts on the connection that all requests share'],
  [STREAMS, 'streams have paths of their own: /subscribe/{channel}, /psubscribe/{pattern}, /monitor'],
  [NO_COMMANDS, 'Redis closes the connection that all requests share'],
  [BLOCKING, 'it blocks the connection that all requests share'],
  [SERVER, 'it acts on the server, not on data'],
];

const REFUSED = new Map(
  REASONS.flatMap(([names, reason]) => names.split(/\s+/).map((name) => [name, reason] as const)),
);

const INSPECTED: ReadonlyMap<string, Inspect> = new Map([
  // with BLOCK they get a connection of their own
  ['XREAD', () => undefined],
  ['XREADGROUP', () => undefined],
  ['CONFIG', refusedConfig],
  ['SCRIPT', refuseSubcommands('DEBUG')],
  ['ACL', refuseSubcommands('LOAD', 'SAVE')],
]);

/**
 * How Portico treats the command `name` (upper case): always refused, refused for some arguments, or always sent.
 * The list above holds on every server; `facts` add what a newer server or a module brings: commands that block,
 * and ones that open a subscription.
 */
export function refusalOf(name: string, facts: CommandFacts | undefined): Inspect | undefined {
  const listed = REFUSED.get(name);
  if (listed !== undefined) return () => listed;
  const inspect = INSPECTED.get(name);
  if (inspect !== undefined || facts === undefined) return inspect;
  const { flags } = facts;
  if (flags.has('blocking')) return () => 'it blocks the connection that all requests share';
  // PUBLISH has the flag pubsub too; only what cannot run in a script listens
  if (flags.has('pubsub') && flags.has('noscript'))
    return () => 'it subscribes the connection that all requests share';
  return undefined;
}

function refuseSubcommands(...refused: string[]): Inspect {
  return (command) => {
    const subcommand = keyword(command, 1);
    return refused.includes(subcommand) ? `${subcommand} acts on the server, not on data` : undefined;
  };
}
