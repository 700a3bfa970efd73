// What the contract and README say of commands, written down a second time: the gateway's own list is what is tested.

/**
 * What must become of a command: `refused` (not available over HTTP), `denied` (the Read Only token may not), `error`
 * (it fails, whoever says so), `open` (Redis gets to say what becomes of it), `any` (nobody knows), or the result that must
 * come back; `digits` are those of an integer beyond what a JavaScript number holds.
 * @typedef {'refused' | 'denied' | 'error' | 'open' | 'any' | { result: string | number, digits?: string }} Expectation
 * @typedef {'full' | 'read'} Access
 * @typedef {{ name: string, arity: number, flags: Set<string>, subcommands: Map<string, Set<string>> }} KnownCommand
 */

const REFUSED = new Set(
  `AUTH HELLO RESET QUIT SELECT CLIENT READONLY READWRITE ASKING MULTI EXEC DISCARD WATCH UNWATCH SUBSCRIBE PSUBSCRIBE
  SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE MONITOR SYNC PSYNC REPLCONF BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN
  BZPOPMAX BZMPOP WAIT WAITAOF SHUTDOWN DEBUG MODULE MIGRATE REPLICAOF SLAVEOF FAILOVER CLUSTER SAVE BGSAVE BGREWRITEAOF
  PFDEBUG PFSELFTEST RESTORE-ASKING POST HOST:`.split(/\s+/),
);

/** Read commands that are too powerful for the Read Only token, and commands that may write although no flag says so. */
const NOT_FOR_READERS = new Set('SCAN KEYS RANDOMKEY EVAL EVALSHA FCALL SCRIPT FUNCTION PUBLISH'.split(' '));

/** Some of their forms are refused. */
const PARTLY_REFUSED = new Set(['CONFIG', 'SCRIPT', 'ACL', 'XREAD', 'XREADGROUP']);
/** Parameters that concern data alone. */
const SETTABLE = new Set(['maxmemory-samples', 'slowlog-max-len', 'hash-max-listpack-entries']);

/** Of the subcommand, where the server has flags for it. */
const flagsOf = (known, args) => known.subcommands.get(String(args[0] ?? '').toLowerCase()) ?? known.flags;

/**
 * @param {KnownCommand} known
 * @param {readonly unknown[]} args
 * @param {Access} access
 * @returns {Expectation}
 */
export function expectationOf(known, args, access) {
  const name = known.name.toUpperCase();
  if (REFUSED.has(name)) return 'refused';
  if (known.flags.has('blocking') && !['XREAD', 'XREADGROUP'].includes(name)) return 'refused';
  if (access === 'full') return isOpen(name, args) ? 'open' : 'any';
  const flags = flagsOf(known, args);
  return flags.has('write') || flags.has('admin') || NOT_FOR_READERS.has(name) ? 'denied' : 'any';
}

function isOpen(name, args) {
  if (!PARTLY_REFUSED.has(name)) return true;
  if (name.startsWith('XREAD')) return !args.some((value) => /^block/i.test(String(value)));
  return name === 'CONFIG' && /^set$/i.test(String(args[0])) && args.length === 3 && SETTABLE.has(args[1]);
}

/** Reads the server's own table. @param {import('ioredis').Redis} redis @returns {Promise<KnownCommand[]>} */
export async function readCommandTable(redis) {
  const table = await redis.call('COMMAND');
  const known = table.map((entry) => ({
    name: entry[0],
    arity: entry[1],
    flags: new Set(entry[2]),
    subcommands: new Map((entry[9] ?? []).map((sub) => [sub[0].split('|')[1], new Set(sub[2])])),
  }));
  // the order of a hash table differs from start to start
  return known.sort((a, b) => (a.name < b.name ? -1 : 1));
}
