import { CommandCounters } from '../../../src/services/kv/commands/command-counters.js';
import type { CommandFacts, CommandTable } from '../../../src/services/kv/commands/command-table.js';
import { readCommandTable } from '../../../src/services/kv/commands/command-table.js';
import { type Access, CommandRules, laneOfRows } from '../../../src/services/kv/commands/commands.js';
import type { Command } from '../../../src/services/kv/resp/resp-encoder.js';

function facts(flags: string[], categories: string[], subcommands: CommandTable = new Map()): CommandFacts {
  return { flags: new Set(flags), categories: new Set(categories), keys: [], subcommands };
}

const TABLE: CommandTable = new Map([
  ['get', facts(['readonly'], ['@read'])],
  ['set', facts(['write'], ['@write'])],
  ['scan', facts(['readonly'], ['@read'])],
  ['keys', facts(['readonly'], ['@read', '@dangerous'])],
  ['ping', facts([], ['@connection'])],
  ['sort_ro', facts(['readonly'], ['@read', '@dangerous'])],
  ['xread', facts(['readonly', 'blocking'], ['@read', '@blocking'])],
  ['publish', facts(['pubsub'], ['@pubsub'])],
  ['newlisten', facts(['pubsub', 'noscript'], ['@pubsub'])],
  ['newwait', facts(['blocking', 'readonly'], ['@read'])],
  [
    'object',
    facts(
      [],
      ['@slow'],
      new Map([
        ['encoding', facts(['readonly'], ['@read'])],
        ['help', facts([], ['@slow'])],
      ]),
    ),
  ],
]);
function rulesOf(table: CommandTable, denied: readonly string[] = []): CommandRules {
  return new CommandRules({
    table,
    isTold: true,
    counters: new CommandCounters(),
    special: new Set(),
    denied: new Map(denied.map((name) => [name, 'the configuration refuses it'])),
  });
}

const rules = rulesOf(TABLE);

function refusal(command: Command, access: Access, by = rules): string | undefined {
  const row = by.admit(command, access);
  return typeof row === 'string' ? row : undefined;
}

test.each([
  'AUTH',
  'HELLO',
  'RESET',
  'QUIT',
  'SELECT',
  'CLIENT',
  'MULTI',
  'EXEC',
  'DISCARD',
  'WATCH',
  'UNWATCH',
  'SUBSCRIBE',
  'PSUBSCRIBE',
  'SSUBSCRIBE',
  'UNSUBSCRIBE',
  'MONITOR',
  'SYNC',
  'PSYNC',
  'REPLCONF',
  'BLPOP',
  'BRPOP',
  'BRPOPLPUSH',
  'BLMOVE',
  'BLMPOP',
  'BZPOPMIN',
  'BZPOPMAX',
  'BZMPOP',
  'WAIT',
  'WAITAOF',
  'SHUTDOWN',
  'DEBUG',
  'MODULE',
  'MIGRATE',
  'REPLICAOF',
  'SLAVEOF',
  'FAILOVER',
  'CLUSTER',
  'POST',
  'HOST:',
])('%s is refused in any case, with any table', (name) => {
  for (const someRules of [rules, rulesOf(new Map())]) {
    for (const spelling of [name, name.toLowerCase(), Buffer.from(name)])
      expect(refusal([spelling, 'x'], 'full', someRules)).toMatch(
        new RegExp(`^ERR Command '${name}' is not available`),
      );
  }
});

test.each([
  [['GET', 'a']],
  [['publish', 'a', 'b']],
  [['NOPE', 'a']],
  [['eval', 'return 1', '0']],
  [['FLUSHALL']],
  [['xread', 'COUNT', '1', 'STREAMS', 'block', '0']],
  [['xreadgroup', 'GROUP', 'block', 'block', 'STREAMS', 's', '>']],
  [['CONFIG', 'GET', 'maxmemory*']],
  [['CONFIG', 'GET', 'req']],
  [['CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru', 'hash-max-listpack-entries', '10']],
  [['SCRIPT', 'LOAD', 'return 1']],
  [['ACL', 'WHOAMI']],
])('%j may run', (command) => {
  expect(refusal(command, 'full')).toBeUndefined();
});

test.each([
  [[], 'empty command'],
  [[''], 'empty command'],
  [['newwait', 'k'], 'blocks'],
  [['newlisten', 'k'], 'subscribes'],
  [['CONFIG', 'SET', 'dir', '/etc'], 'not on data'],
  [['CONFIG', 'SET', 'maxmemory', '1mb', 'requirepass', ''], 'not on data'],
  [['CONFIG', 'REWRITE'], 'host'],
  [['CONFIG', 'GET', '*'], 'passwords'],
  [['CONFIG', 'GET', 'maxmemory', 'RE?UIREPAS[a-z]'], 'passwords'],
  [['CONFIG', 'GET', 'm\\asterauth'], 'passwords'],
  [['CONFIG', 'GET', `${'*'.repeat(10)}r*e*q*u*i*r*e*p*a*s*s*`], 'passwords'],
  [['script', 'debug', 'yes'], 'DEBUG'],
  [['acl', 'load'], 'LOAD'],
])('%j is refused: %s', (command, reason) => {
  expect(refusal(command, 'full')).toMatch(/^ERR /);
  expect(refusal(command, 'full')).toContain(reason);
});

test('more arguments than Redis reads are refused before they are sent', () => {
  expect(refusal(new Array(1024 * 1024 + 1).fill('DEL'), 'full')).toMatch(/^ERR more than 1048576/);
});

test.each([
  [['get', 'a'], true],
  [['PING'], true],
  [['OBJECT', 'ENCODING', 'k'], true],
  [['xread', 'STREAMS', 's', '0'], true],
  [['set', 'a', 'b'], false],
  [['SCAN', '0'], false],
  [['keys', '*'], false],
  [['sort_ro', 'k'], false],
  [['OBJECT', 'HELP'], false],
  [['OBJECT'], false],
  [['nope'], false],
  [['x'.repeat(100)], false],
])('the read-only token: %j %s', (command, allowed) => {
  const text = refusal(command, 'read');
  if (allowed) expect(text).toBeUndefined();
  else expect(text).toMatch(/^NOPERM this user has no permissions to run the '[a-z_]+' command$/);
});

test('without a command table the read-only token may do nothing', () => {
  expect(refusal(['get', 'a'], 'read', rulesOf(new Map()))).toMatch(/^NOPERM/);
});

test('the reply of COMMAND, with subcommands; what is no such reply makes no entries', () => {
  const text = (word: string) => Buffer.from(word);
  const entry = (name: string, flags: string[], categories: string[], subcommands: never[] = []) => [
    text(name),
    '2',
    flags.map(text),
    '1',
    '1',
    '1',
    categories.map(text),
    [],
    [],
    subcommands,
  ];
  const table = readCommandTable([
    entry('OBJECT', [], ['@slow'], [entry('object|freq', ['readonly'], ['@read'])] as never),
  ]);
  expect(table.get('object')?.subcommands.get('freq')?.categories).toEqual(new Set(['@read']));
  for (const other of [undefined, null, '1', text('x'), [null, '1']] as never[])
    expect([...readCommandTable(other).keys()].filter((name) => name !== '')).toEqual([]);
});

test.each([
  [['CONFIG', 'GET', 'requirepass*\0']],
  [['CONFIG', 'GET', 'requirepass\0x']],
  [['CONFIG', 'SET', 'dir\0maxmemory', '/tmp']],
  [['SCRIPT', 'DEBUG\0', 'YES']],
  [['SUBSCRIBE\0x', 'channel']],
  [[Buffer.from('monitor\0')]],
])('a NUL, at which Redis stops comparing, hides nothing: %j', (command) => {
  expect(refusal(command, 'full')).toMatch(/^ERR /);
});

test('the configuration may refuse more', () => {
  expect(refusal(['flushall'], 'full', rulesOf(TABLE, ['FLUSHALL']))).toMatch(/^ERR .*configuration/);
});

test.each([
  [['get', 'a'], 'main'],
  [['lrange', 'a', '0', '-1'], 'bulk'],
  [['eval', 'return 1', '0'], 'scripts'],
  [['eval_ro', 'return 1', '0'], 'scripts'],
  [['script', 'kill'], 'main'],
  [['nope'], 'main'],
])('%j goes over the connection %s', (command, lane) => {
  const table: CommandTable = new Map([
    ['get', facts(['readonly', 'fast'], ['@read'])],
    ['lrange', facts(['readonly'], ['@read'])],
    ['eval', facts(['noscript', 'movablekeys'], ['@scripting'])],
    ['eval_ro', facts(['noscript', 'movablekeys', 'readonly'], ['@scripting'])],
    ['script', facts([], ['@slow', '@scripting'])],
  ]);
  const row = rulesOf(table).admit(command, 'full');
  expect(typeof row === 'string' ? row : laneOfRows([row])).toBe(lane);
});
