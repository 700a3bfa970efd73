import { readFileSync } from 'node:fs';
import { keyText, type SettingLeaf } from './settings-tree.js';

type Document = Record<string, unknown>;

/** What of the environment became part of the document. */
export interface AppliedEnvironment {
  /** `kv.databases[0].token` -> name of the variable that set it, so that errors can name it. */
  readonly origins: ReadonlyMap<string, string>;
  /** Variables with the prefix that are no key's. */
  readonly unknown: readonly string[];
  /** What is wrong with variables that name a file, a line each. */
  readonly problems: readonly string[];
}

/** `PORTICO_KV_TOKEN_FILE` names a file with the value of `PORTICO_KV_TOKEN`, as secrets of containers come. */
const OF_FILE = /_FILE$/;

/**
 * Lays environment variables over a configuration document (changed in place). A key's variable is its path in
 * capitals: `http.maxInFlight` is `PREFIX_HTTP_MAX_IN_FLIGHT`, `kv.databases[1].token` is `PREFIX_KV_DATABASES_1_TOKEN`;
 * a key with a short name (`SettingLeaf.env`) also takes that one, for the first entry of its list. An empty
 * variable counts as absent, because compose files pass unset ones as empty. With `_FILE` behind its name a variable
 * holds the path of a file with the value, whose last line break is none of it.
 */
export function applyEnvironment(
  document: Document,
  leaves: readonly SettingLeaf[],
  environment: Readonly<Record<string, string | undefined>>,
  prefix: string,
): AppliedEnvironment {
  const origins = new Map<string, string>();
  const unknown: string[] = [];
  const problems: string[] = [];
  const keysOf = keyFinder(leaves, prefix);
  for (const [name, value] of Object.entries(environment).sort()) {
    if (!name.startsWith(prefix) || value === undefined || value === '') continue;
    const isOfFile = OF_FILE.test(name) && keysOf(name).length === 0;
    const direct = isOfFile ? name.replace(OF_FILE, '') : name;
    const keys = keysOf(direct);
    if (keys.length === 0) unknown.push(name);
    else if (isOfFile && (environment[direct] ?? '') !== '')
      problems.push(`${name}: ${direct} is set as well`);
    else {
      const text = isOfFile ? textOf(value) : value;
      if (text instanceof Error) problems.push(`${name}: ${text.message}`);
      else
        for (const { leaf, path } of keys) {
          setAt(document, path, parsed(text, leaf.type));
          origins.set(keyText(path), name);
        }
    }
  }
  return { origins, unknown, problems };
}

type Path = readonly (string | number)[];

/** @returns the keys that a variable sets: none, one, or the several that share a short name */
function keyFinder(
  leaves: readonly SettingLeaf[],
  prefix: string,
): (name: string) => { leaf: SettingLeaf; path: Path }[] {
  const matchers = leaves.map((leaf) => ({ leaf, pattern: variablePattern(leaf, prefix) }));
  return (name) =>
    matchers.flatMap(({ leaf, pattern }) => {
      const places =
        leaf.env === name ? leaf.path.filter((s) => s === '#').map(() => 0) : placesIn(name, pattern);
      return places === undefined ? [] : [{ leaf, path: withPlaces(leaf.path, places) }];
    });
}

/** @returns an error without the file's name, which the variable has, and without its text, which is a secret */
function textOf(file: string): string | Error {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    return new Error(`the file cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** `PORTICO_HTTP_MAX_IN_FLIGHT`; a list's place is shown as `<n>`. */
export function variableName(path: readonly string[], prefix: string): string {
  return prefix + path.map((step) => (step === '#' ? '<n>' : snake(step))).join('_');
}

/** The variable of a key such as `kv.databases[1].url`: the short one where it has one and stands in the first entry. */
export function variableOf(key: string, leaves: readonly SettingLeaf[], prefix: string): string {
  const places = [...key.matchAll(/\[(\d+)\]/g)].map(([, place]) => place as string);
  const path = key.replaceAll(/\[\d+\]/g, '.#').split('.');
  const leaf = leaves.find((each) => each.path.join('.') === path.join('.'));
  if (leaf?.env !== undefined && places.every((place) => place === '0')) return leaf.env;
  let next = 0;
  return variableName(path, prefix).replaceAll('<n>', () => places[next++] as string);
}

function snake(key: string): string {
  return key.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toUpperCase();
}

function variablePattern(leaf: SettingLeaf, prefix: string): RegExp {
  return new RegExp(`^${variableName(leaf.path, prefix).replaceAll('<n>', '(\\d{1,3})')}$`);
}

function placesIn(name: string, pattern: RegExp): number[] | undefined {
  return pattern.exec(name)?.slice(1).map(Number);
}

function withPlaces(path: readonly string[], places: readonly number[]): (string | number)[] {
  let next = 0;
  return path.map((step) => (step === '#' ? (places[next++] as number) : step));
}

function setAt(document: Document, path: Path, value: unknown): void {
  let current = document as Record<string | number, unknown>;
  path.forEach((step, i) => {
    if (i === path.length - 1) {
      current[step] = value;
      return;
    }
    const inside = current[step];
    if (inside === null || typeof inside !== 'object')
      current[step] = typeof path[i + 1] === 'number' ? [] : {};
    current = current[step] as Record<string | number, unknown>;
  });
}

/** Text of a variable or file as the value of a key. */
export function parsed(text: string, type: SettingLeaf['type']): unknown {
  if (text === 'null') return null;
  if (type === 'number') return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (type === 'list') return text.split(',').map((part) => part.trim());
  return text;
}
