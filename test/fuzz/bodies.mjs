/**
 * A text that repeats something until it has a given length.
 * @typedef {object} Shape
 * @property {string} name
 * @property {string} before
 * @property {(i: number) => string} unit
 * @property {string} after
 */

/** @returns {Shape} */
const shape = (name, before, unit, after) => ({
  name,
  before,
  unit: typeof unit === 'string' ? () => unit : unit,
  after,
});

/** Values of any size that no service wants. @type {readonly Shape[]} */
export const HOSTILE = [
  shape('numbers', '[', '1,', '1]'),
  shape('fractions', '[', '0.5,', '1]'),
  shape('objects', '[', '{},', '{}]'),
  shape('arrays', '[', '[],', '[]]'),
  shape('strings', '[', '"a",', '"a"]'),
  shape('different strings', '[', (i) => `"s${i}",`, '"a"]'),
  shape('nulls', '[', 'null,', 'null]'),
  shape('small objects', '[', '{"a":1},', '{}]'),
  shape('different keys', '{', (i) => `"k${i}":1,`, '"z":1}'),
  shape('equal keys', '{', '"k":[],', '"z":1}'),
  shape('keys that pollute', '[', '{"__proto__":{}},', '{}]'),
  shape('deep arrays', '', '[', ''),
  shape('deep objects', '', '{"a":', ''),
  shape('deep arrays, several', '[', `${'['.repeat(200)}${']'.repeat(200)},`, '1]'),
  shape('a long string', '"', 'x', '"'),
  shape('a string of escapes', '"', '\\n', '"'),
  shape('a string of quotes', '"', '\\"', '"'),
  shape('a string of backslashes', '"', '\\\\', '"'),
  shape('a string of letters', '"', 'é', '"'),
  shape('a string of half characters', '"', '\\ud83d', '"'),
  shape('a string of NULs', '"', '\\u0000', '"'),
  shape('a long number', '', '9', ''),
  shape('a long fraction', '0.', '0', '1'),
  shape('blanks', '', ' ', '1'),
  shape('blanks within', '[', '1 \n\t ,', '1]'),
  shape('a long key', '{"', 'k', '":1}'),
  shape('no JSON', '', '}', ''),
  shape('no UTF-8', '', '\xff', ''),
  shape('nearly JSON', '[', '{"id":"a"},', '{"id":}]'),
];

/** @param {Shape} shape @param {number} bytes @returns {Buffer} of at most so many */
export function bodyOf({ before, unit, after, name }, bytes) {
  const encoding = name === 'no UTF-8' ? 'latin1' : 'utf8';
  const [first, second] = [unit(0), unit(1)];
  const ends = Buffer.byteLength(before) + Buffer.byteLength(after);
  if (first === second) {
    const size = Buffer.byteLength(first, encoding);
    const count = Math.max(1, Math.floor((bytes - ends) / size));
    return Buffer.concat([
      Buffer.from(before),
      Buffer.alloc(count * size, Buffer.from(first, encoding)),
      Buffer.from(after),
    ]);
  }
  const parts = [before];
  let size = ends;
  for (let i = 0; ; i++) {
    const text = unit(i);
    size += text.length;
    if (size > bytes) break;
    parts.push(text);
  }
  parts.push(after);
  return Buffer.from(parts.join(''));
}

/** The same value as a member of an object that has the others, too. @returns {Shape} */
export function asMember(key, value, others = {}) {
  const rest = JSON.stringify(others).slice(1, -1);
  return {
    ...value,
    name: `${key}: ${value.name}`,
    before: `{${rest === '' ? '' : `${rest},`}${JSON.stringify(key)}:${value.before}`,
    after: `${value.after}}`,
  };
}

/** An array of what `unit` makes, which `key` may hold. @returns {Shape} */
export function many(name, unit, { key, others } = {}) {
  const list = {
    name: `many ${name}`,
    before: '[',
    unit: (i) => `${JSON.stringify(unit(i))},`,
    after: `${JSON.stringify(unit(0))}]`,
  };
  return key === undefined ? list : asMember(key, list, others);
}
