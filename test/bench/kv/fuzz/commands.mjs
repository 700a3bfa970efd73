import { argument, bytesOf, keyName, literal, text } from './arguments.mjs';
import { expectationOf } from './rules.mjs';
import { FORBIDDEN, TEMPLATES } from './templates.mjs';

/**
 * @typedef {import('./random.mjs').Random} Random
 * @typedef {import('./rules.mjs').Expectation} Expectation
 * @typedef {{ command: import('./arguments.mjs').Argument[], expect: Expectation }} Row
 */

/** No server has them, and some look like ones that it has. */
const ODD_NAMES = [
  ' ',
  'GET ',
  ' GET',
  '\tGET',
  'GET key',
  'GET\0',
  '\0',
  'SUBSCRIBE\0x',
  'MONITOR\0',
  'GET\r\n',
  'PING\r\nSHUTDOWN\r\n',
  '*1\r\n$8\r\nSHUTDOWN\r\n',
  '\r\n',
  '\n',
  'NOPE',
  'G\u0395T',
  'ſubscribe',
  'ﬂushall',
  '🔥',
  '\ufeffGET',
  '__proto__',
  'constructor',
  'toString',
  'undefined',
  'null',
  'config|set',
  'acl|setuser',
  'pipeline ',
  'EVAL "return 1" 0',
  `${'A'.repeat(64)}`,
  `${'A'.repeat(65)}`,
  `GET${' '.repeat(2_000)}`,
];

/**
 * One command and what must become of it.
 * @param {Random} random
 * @param {{ table: import('./rules.mjs').KnownCommand[], access: import('./rules.mjs').Access, marker: string }} context
 *   `marker` is a text that no other command of the run holds
 * @returns {Row}
 */
export function commandFor(random, { table, access, marker }) {
  const kind = random.weighted([
    [40, 'template'],
    [30, 'known'],
    [12, 'marker'],
    [10, 'forbidden'],
    [8, 'odd'],
  ]);
  if (kind === 'odd') return { command: oddCommand(random), expect: 'error' };
  if (kind === 'marker') return echo(random, marker);
  if (kind === 'forbidden') {
    const [name, ...args] = random.pick(FORBIDDEN);
    // Redis looks names up as C strings, which end at a NUL
    const hidden = random.chance(0.1) ? `\0${random.below(1_000)}` : '';
    return { command: [`${spelled(name, random)}${hidden}`, ...args], expect: 'refused' };
  }
  if (kind === 'template') {
    const [name, ...args] = random.pick(TEMPLATES)(random);
    const known = table.find((entry) => entry.name === name.toLowerCase());
    // older servers lack some: they say so
    const expect = known === undefined ? 'any' : expectationOf(known, args, access);
    return { command: [spelled(name, random), ...args], expect };
  }
  const known = random.pick(table);
  const args = tame(known.name, argumentsOf(known, random), random);
  return { command: [spelled(known.name, random), ...args], expect: expectationOf(known, args, access) };
}

/** What must come back byte by byte: mostly what only this command holds. */
function echo(random, marker) {
  const value = random.weighted([
    [6, marker],
    [3, `${marker} ${text(random)}`],
    [2, literal(random)],
    [1, Buffer.concat([Buffer.from(marker), random.bytes(random.below(200))])],
  ]);
  // invalid UTF-8 becomes U+FFFD: in the reply, or already in the JSON of the request
  return { command: [spelled('ECHO', random), value], expect: { result: bytesOf(value).toString() } };
}

function oddCommand(random) {
  return [random.pick(ODD_NAMES), ...random.list(random.below(3), () => argument(random))];
}

function spelled(name, random) {
  return random.weighted([
    [5, name.toUpperCase()],
    [4, name.toLowerCase()],
    [1, [...name].map((c) => (random.chance(0.5) ? c.toLowerCase() : c.toUpperCase())).join('')],
  ]);
}

function argumentsOf({ arity, subcommands }, random) {
  const least = Math.abs(arity) - 1;
  const extra = arity < 0 ? random.below(4) : 0;
  const count = Math.max(0, least + extra + (random.chance(0.1) ? random.below(4) - 2 : 0));
  const args = random.list(count, () => argument(random));
  if (args.length > 0 && random.chance(0.6)) args[0] = keyName(random);
  if (subcommands.size > 0 && args.length > 0 && random.chance(0.9))
    args[0] = random.pick([...subcommands.keys()].sort());
  return args;
}

const textOf = (value) => (typeof value === 'string' ? value : (value?.literal ?? ''));

/** Takes out what Redis itself could not bear or what would change the rules for everybody, whoever let it pass. */
function tame(name, args, random) {
  switch (name) {
    case 'srandmember':
    case 'hrandfield':
    case 'zrandmember':
      // a count of -2^63 is a reply of 2^63 elements
      return args.map((value, i) => (i > 0 && Number(textOf(value)) < -1_000 ? '-7' : value));
    case 'lcs':
      // its time is the product of both lengths
      return args.map((value, i) => (i < 2 ? `lcs:${random.below(3)}` : value));
    case 'config':
      // with a small maxmemory every write fails, the canary's too
      return args.map((value, i) => (/^maxmemory$/i.test(textOf(args[i - 1])) ? '0' : value));
    case 'acl':
      return args.map((value, i) => (i === 1 && textOf(value) !== 'HELP' ? 'fuzz' : value));
    default:
      return args;
  }
}
