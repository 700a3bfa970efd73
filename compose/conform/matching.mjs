import { isDeepStrictEqual } from 'node:util';

/**
 * What a reply is expected to be, as data. A plain value is itself; of an object only the members that are named count. And:
 *   {"$is": "integer" | "number" | "string" | "array" | "object"}
 *   {"$matches": "a regular expression"}     of a text
 *   {"$near": 0.5}                           a number, within 0.001
 *   {"$length": 2}                           of a list
 *   {"$has": [...]}                          a list with these elements, in whatever order, and perhaps others
 *   {"$without": ["error"]}                  an object that has none of these members
 * @typedef {unknown} Expected
 */

/** @type {Record<string, (wanted: any, got: any) => boolean>} */
const matchers = {
  $is: (kind, got) => {
    if (kind === 'integer') return Number.isInteger(got);
    if (kind === 'array') return Array.isArray(got);
    if (kind === 'object') return typeof got === 'object' && got !== null && !Array.isArray(got);
    return typeof got === kind;
  },
  $matches: (pattern, got) => typeof got === 'string' && new RegExp(pattern).test(got),
  $near: (number, got) => typeof got === 'number' && Math.abs(got - number) < 0.001,
  $length: (length, got) => Array.isArray(got) && got.length === length,
  $has: (elements, got) =>
    Array.isArray(got) && elements.every((wanted) => got.some((one) => fits(wanted, one))),
  $without: (names, got) =>
    typeof got === 'object' && got !== null && names.every((name) => !Object.hasOwn(got, name)),
};

/** @param {any} expected @param {any} got @returns {boolean} */
export function fits(expected, got) {
  if (Array.isArray(expected))
    return (
      Array.isArray(got) &&
      got.length === expected.length &&
      expected.every((wanted, i) => fits(wanted, got[i]))
    );
  if (expected === null || typeof expected !== 'object') return isDeepStrictEqual(expected, got);
  return Object.entries(expected).every(([name, wanted]) => {
    const matcher = matchers[name];
    if (matcher !== undefined) return matcher(wanted, got);
    return got !== null && typeof got === 'object' && Object.hasOwn(got, name) && fits(wanted, got[name]);
  });
}

/** A value at `result.vectors.0.id`; `undefined` where there is none. @param {any} value @param {string} path */
export const valueAt = (value, path) =>
  path === '' ? value : path.split('.').reduce((inner, step) => inner?.[step], value);

/**
 * Puts values into `{name}` of every text; a text that is nothing but one becomes the value itself. `{"$vector": [1, 2]}` becomes
 * a list with zeros behind, as long as `values.dimension` says.
 * @param {any} template @param {Record<string, any>} values @returns {any}
 */
export function filled(template, values) {
  if (typeof template === 'string') {
    const whole = /^\{(\w+)\}$/.exec(template)?.[1];
    if (whole !== undefined && Object.hasOwn(values, whole)) return values[whole];
    return template.replace(/\{(\w+)\}/g, (text, name) =>
      Object.hasOwn(values, name) ? String(values[name]) : text,
    );
  }
  if (Array.isArray(template)) return template.map((one) => filled(one, values));
  if (template === null || typeof template !== 'object') return template;
  if (Array.isArray(template.$vector))
    return Array.from({ length: values.dimension }, (_, i) => template.$vector[i] ?? 0);
  return Object.fromEntries(Object.entries(template).map(([name, one]) => [name, filled(one, values)]));
}
