import fc from 'fast-check';
import { keySlot } from '../../../src/services/kv/cluster/key-slot.js';
import { type CommandFacts, readCommandTable } from '../../../src/services/kv/commands/command-table.js';
import { exactFacts } from '../../../src/services/kv/commands/commands.js';
import { firstKeyAt, keysAt } from '../../../src/services/kv/commands/key-specs.js';
import type { RespValue } from '../../../src/services/kv/resp/resp-decoder.js';
import { type RedisServer, startRedis } from '../../support/kv/redis-server.js';

/** As it came over the wire. */
function resp(value: unknown): RespValue {
  if (Array.isArray(value)) return value.map(resp);
  return typeof value === 'string' ? Buffer.from(value) : value === null ? null : String(value);
}

const word = fc.oneof(
  fc.constantFrom('STREAMS', 'streams', 'STORE', 'storedist', 'KEYS', 'GROUP', 'COUNT', 'LEFT', 'WEIGHTS'),
  fc.integer({ min: -1, max: 6 }).map(String),
  // Redis looks for keys behind `1 ` as well, and then refuses the command: that is no number
  fc.string({ maxLength: 4 }).filter((text) => !/^\s*[+-]?\d/.test(text)),
);

describe.each(['newest', 'system'] as const)('on the %s Redis', (program) => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis({ program, config: ['cluster-enabled yes'] });
  });

  afterAll(() => server?.stop());

  test('a key has the slot that Redis says', async () => {
    const braces = fc
      .array(fc.oneof(fc.constantFrom('{', '}', '{}', 'a', 'é', '\0'), fc.string({ unit: 'grapheme' })))
      .map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(braces, async (key) => {
        const slot = await server.command('CLUSTER', 'KEYSLOT', key);
        expect([keySlot(key), keySlot(Buffer.from(key))]).toEqual([slot, slot]);
      }),
      { numRuns: 500 },
    );
  });

  test('the keys of any command stand where Redis says', async () => {
    const table = readCommandTable(resp(await server.command('COMMAND')));
    const commands: [string[], CommandFacts][] = [...table].flatMap(([name, facts]) =>
      // never sent, and its entry in the table is incomplete
      name === 'migrate'
        ? []
        : [
            [[name], facts] as [string[], CommandFacts],
            ...[...facts.subcommands].map(([sub, own]) => [[name, sub], own] as [string[], CommandFacts]),
          ],
    );
    const compared = new Set<string>();
    const compare = async ([name, facts]: [string[], CommandFacts], words: string[]) => {
      const command = [...name, ...words];
      const told = await server.command('COMMAND', 'GETKEYS', ...command).catch(() => undefined);
      // a wrong number of arguments, no keys, or a count of keys that cannot be
      if (told === undefined) return;
      const keys = keysAt(exactFacts(facts, command).keys, command).map((i) => command[i]);
      // where a specification leads nowhere Redis has code of its own, and refuses the command as wrong afterwards
      if (keys.length === 0) return;
      // what else a SORT touches depends on its options, which the table leaves open
      if (name[0]?.startsWith('sort')) expect(told).toContain(keys[0]);
      else expect([command, keys]).toEqual([command, told]);
      const first = firstKeyAt(facts.keys, command);
      expect(first === undefined ? undefined : command[first]).toBe(keys[0]);
      compared.add(name.join(' '));
    };
    await fc.assert(
      fc.asyncProperty(fc.array(word, { maxLength: 10 }), async (words) => {
        await Promise.all(commands.map((command) => compare(command, words)));
      }),
      { numRuns: 60 },
    );
    for (const name of ['get', 'mset', 'eval', 'xread', 'zunionstore', 'object encoding', 'xgroup create'])
      expect(compared).toContain(name);
    expect(compared.size).toBeGreaterThan(130);
  });
});
