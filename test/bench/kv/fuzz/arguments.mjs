/**
 * An argument: text, bytes (in a path only), or a literal of JSON that is no string.
 * @typedef {string | Buffer | { literal: string }} Argument
 * @typedef {import('./random.mjs').Random} Random
 */

/** Offsets between 1e6 and 2^32 are left out: SETBIT and SETRANGE would make strings of up to 512 MB. */
const NUMBERS =
  `0 1 2 3 7 10 16 100 1000 -1 -2 -5 -100 65536 1000000 4294967296 9007199254740993 9223372036854775807
  -9223372036854775808 9223372036854775808 18446744073709551616 99999999999999999999999999 1.5 -0.5 3.0 1e3 1e400 0x10 +5 007
  inf -inf nan 1e-400`.split(/\s+/);

const LITERALS =
  `0 -0 1 -1 1.0 1.50 1e5 1E+2 1e400 -1e-400 9007199254740993 -9223372036854775808 18446744073709551616
  123456789012345678901234567890 true false`.split(/\s+/);

const WORDS =
  `EX PX EXAT NX XX GT LT GET KEEPTTL CH INCR LIMIT BY WITHSCORES WITHVALUES WITHDIST COUNT MATCH TYPE BLOCK STREAMS
  GROUP NOACK MKSTREAM MAXLEN MINID ~ = * $ > - + ( [ (1 [a -inf +inf BYSCORE BYLEX REV STORE ALPHA ASC DESC LEFT RIGHT BEFORE AFTER
  WEIGHTS AGGREGATE SUM FROMLONLAT FROMMEMBER BYRADIUS BYBOX km m AND OR NOT BYTE BIT INCRBY SET u8 i64 u63 OVERFLOW FAIL ASYNC SYNC
  REPLACE ABSTTL FREQ DB HELP LIST INFO STATS LOAD DELETE FLUSH CREATE EXISTS ID FIELDS CHANNELS NUMSUB USAGE ENCODING`.split(
    /\s+/,
  );

const TEXTS = [
  '',
  ' ',
  'OK',
  '+OK\r\n',
  '$-1\r\n',
  '-ERR no\r\n',
  ':1\r\n',
  '*1\r\n$7\r\nFLUSHDB\r\n',
  '\r\n*3\r\n$3\r\nSET\r\n$6\r\ncanary\r\n$5\r\nwrong\r\n',
  'a\nb',
  'a\r\nX-Injected: 1\r\n\r\n',
  'with\0nul',
  '"quoted"',
  'back\\slash\\',
  '{"a":[1,2,{"b":null}]}',
  '[["nested"]]',
  'null',
  'true',
  'ünïcödé',
  '日本語',
  '🔥👩‍👩‍👧‍👦',
  '\u2028\u2029',
  '\ufeffbom',
  '\u007f\u0080',
  '__proto__',
  'constructor',
  '%00%0d%0a',
  'a/b?c=d&e#f',
  '..',
];

/** Some hold one type, others are used for any. @param {Random} random @param {string} [type] */
export function keyName(random, type) {
  if (type !== undefined && random.chance(0.9)) return `${type}:${random.below(6)}`;
  return random.weighted([
    [12, `any:${random.below(20)}`],
    [4, `${random.pick(['string', 'list', 'set', 'zset', 'hash', 'stream'])}:${random.below(6)}`],
    [1, ''],
    [1, 'ключ 🔑'],
    [1, `bin\r\n\0${random.below(5)}`],
  ]);
}

/** @param {Random} random @returns {string} */
export function number(random) {
  return random.chance(0.5) ? String(random.below(20)) : random.pick(NUMBERS);
}

/** @param {Random} random @returns {string} */
export function text(random) {
  return random.weighted([
    [6, random.pick(TEXTS)],
    [4, `v${random.below(1_000)}`],
    [1, 'x'.repeat(random.below(3_000))],
    [1, 'é"\n'.repeat(random.below(300))],
  ]);
}

/** A number, `true` or `false` as it stands in JSON. @param {Random} random @returns {Argument} */
export function literal(random) {
  return { literal: random.pick(LITERALS) };
}

/** Any argument at all. @param {Random} random @returns {Argument} */
export function argument(random) {
  return random.weighted([
    [8, keyName(random)],
    [5, number(random)],
    [4, random.pick(WORDS)],
    [4, text(random)],
    [2, literal(random)],
    [1, random.bytes(random.below(40))],
    [0.2, random.bytes(random.below(5_000))],
  ]);
}

/** The bytes that Redis must get. @param {Argument} value */
export function bytesOf(value) {
  if (Buffer.isBuffer(value)) return value;
  return Buffer.from(typeof value === 'string' ? value : value.literal);
}

/** JSON of an argument, spelled in one of the ways that JSON allows. @param {Argument} value @param {Random} random */
export function jsonOf(value, random) {
  if (!Buffer.isBuffer(value) && typeof value === 'object') return value.literal;
  // JSON has no bytes; what is no UTF-8 is sent as the replacement character
  const string = String(value);
  if (random.chance(0.9)) return JSON.stringify(string);
  const spelled = (character) =>
    /[a-z]/i.test(character) && random.chance(0.3)
      ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
      : JSON.stringify(character).slice(1, -1);
  return `"${[...string].map(spelled).join('')}"`;
}
