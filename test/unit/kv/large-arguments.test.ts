import fc from 'fast-check';
import { commandOfJson, commandsOfJson } from '../../../src/services/kv/api/json-arguments.js';
import { largeCommandOfJson, largeCommandsOfJson } from '../../../src/services/kv/api/large-arguments.js';
import { MOST_ARGUMENTS } from '../../../src/services/kv/api/request-limits.js';
import type { Command } from '../../../src/services/kv/resp/resp-encoder.js';
import { anyCharacter } from '../../support/any-character.js';

const limits = { command: 1e9, pipeline: 100_000 };

const argument = fc.oneof(
  fc.string({ unit: anyCharacter }).map((text) => JSON.stringify(text)),
  fc.bigInt().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => JSON.stringify(n)),
  fc.constantFrom('true', 'false', '1.0', '-0', '1e3', '9007199254740993'),
  fc
    .tuple(fc.constantFrom('x', 'é', '\\', '"'), fc.nat({ max: 200_000 }))
    .map(([letter, times]) => JSON.stringify(letter.repeat(times))),
);
const repeated = fc
  .tuple(argument, fc.nat({ max: 4_000 }))
  .map(([one, times]) => Array<string>(times).fill(one));
const row = fc.oneof(fc.array(argument, { maxLength: 8 }), repeated).map((all) => `[${cut(all).join(', ')}]`);

/** Not more than a few pieces. */
function cut(all: readonly string[]): readonly string[] {
  const most = Math.ceil(300_000 / ((all[0] ?? '').length + 1));
  return all.slice(0, Math.max(8, most));
}

/** Jest compares bytes one by one, as properties: a minute for what takes no time as text. */
const asText = (command: Command) =>
  command.map((one) => (typeof one === 'string' ? one : `bytes ${one.toString('latin1')}`));

test('a large command is read as a small one is', async () => {
  await fc.assert(
    fc.asyncProperty(row, async (text) => {
      const body = Buffer.from(text);
      expect(asText(await largeCommandOfJson(body, limits))).toEqual(asText(commandOfJson(body)));
    }),
    { numRuns: 40 },
  );
});

test('large pipelines are read as small ones are', async () => {
  const rows = fc.array(row, { minLength: 1, maxLength: 5 }).map((all) => `[${all.join(',')}]`);
  await fc.assert(
    fc.asyncProperty(rows, async (text) => {
      const body = Buffer.from(text);
      const large = await largeCommandsOfJson(body, limits);
      expect(large.map(asText)).toEqual(commandsOfJson(body).map(asText));
    }),
    { numRuns: 40 },
  );
});

const many = (unit: string, count: number) => `[${unit.repeat(count)}${unit.slice(0, -1)}]`;

test.each([
  ['objects', many('{},', 100_000), /unsupported arg type/],
  ['nulls', many('null,', 100_000), /null args are not supported/],
  ['rows in a command', many('["a"],', 50_000), /unsupported arg type/],
  ['a large row in a command', `["a",${many('"b",', 50_000)}]`, /unsupported arg type/],
  ['a large object in a command', `["a",{${'"b":1,'.repeat(50_000)}"c":1}]`, /unsupported arg type/],
  ['arguments', many('"a",', MOST_ARGUMENTS + 1), /more than 1048576 arguments in one request/],
  ['an object', `{${'"b":1,'.repeat(50_000)}"c":1}`, /expected a JSON array/],
  ['no JSON', `[${'"a",'.repeat(50_000)}x]`, /not valid JSON/],
  ['depth', '['.repeat(50_000), /nested deeper than/],
])('refuses %s', async (_, text, message) => {
  const read = async () => largeCommandOfJson(Buffer.from(text), limits);
  await expect(read()).rejects.toThrow(message);
});

test.each([
  [
    'commands',
    many('["a"],', 100_000),
    /max pipeline length exceeded. Limit: 100000 commands, Actual: 100001/,
  ],
  ['texts', many('"a",', 100_000), /expected a JSON array of arrays/],
  ['rows in rows', many('[["a"]],', 10_000), /unsupported arg type/],
])('refuses a pipeline of %s', async (_, text, message) => {
  await expect(largeCommandsOfJson(Buffer.from(text), limits)).rejects.toThrow(message);
});
