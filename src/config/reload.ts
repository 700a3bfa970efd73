import { isDeepStrictEqual } from 'node:util';
import { keyText } from '../lib/settings/settings-tree.js';
import { crossChecks, incompleteness } from './checks.js';
import { ConfigError, type ConfigSource, deepFreeze, keyNames, loadConfig } from './load.js';
import { type Config, configLeaves, enabledServices } from './schema.js';

/** What became of a configuration that was read again while the gateway runs. */
export interface Reloaded {
  /** The one that ran, with the new values of keys that can be exchanged. */
  readonly config: Config;
  /** Keys that have another value now. */
  readonly changed: readonly string[];
  /** Keys whose new value waits for the next start. */
  readonly atRestart: readonly string[];
}

/**
 * Reads file and environment again and takes what a running gateway can take, all of it or nothing.
 * @throws ConfigError naming every wrong key
 */
export function reloadConfig(current: Config, source: ConfigSource): Reloaded {
  const next = loadConfig(source).config;
  const merge = new Merge();
  const { http, log, console, traces, admin, ...services } = merge.merged(
    documentOf(current),
    documentOf(next),
    [],
  ) as ReturnType<typeof documentOf>;
  const config = { http, log, console, traces, admin, services } as Config;
  // the two may not go together: the only token was exchanged for one that an address yields which waits for a start
  const enabled = enabledServices(config);
  const problems = [
    ...crossChecks(config, enabled),
    ...incompleteness(config, enabled, [], keyNames(new Map())).map(
      ({ key, text }) => `${key ?? ''}: ${text}`,
    ),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  return { config: deepFreeze(config), changed: merge.changed, atRestart: merge.atRestart };
}

const documentOf = ({ http, log, console, traces, admin, services }: Config) => ({
  http,
  log,
  console,
  traces,
  admin,
  ...services,
});

type Path = readonly (string | number)[];
type Named = Readonly<Record<string, unknown>> & { readonly name: string };

/** Lays a configuration over the running one. */
class Merge {
  readonly changed: string[] = [];
  readonly atRestart: string[] = [];
  private readonly leaves = configLeaves().map(({ path, reload }) => ({ key: path.join('.'), reload }));

  merged(current: unknown, next: unknown, path: Path): unknown {
    if (isDeepStrictEqual(current, next)) return current;
    const kind = this.kindOf(path);
    if (kind === 'reload') {
      this.changed.push(keyText(path));
      return next;
    }
    if (isObject(current) && isObject(next) && kind !== 'leaf')
      return Object.fromEntries(
        Object.keys(current).map((key) => [key, this.merged(current[key], next[key], [...path, key])]),
      );
    if (kind === 'mixed' && isList(current) && isList(next)) return this.entries(current, next, path);
    this.atRestart.push(keyText(path));
    return current;
  }

  /** An entry is known by its name: by its place, the token of one database could become another's. */
  private entries(current: readonly Named[], next: readonly Named[], path: Path): unknown {
    const names = (entries: readonly Named[]) => entries.map(({ name }) => name);
    if (!isDeepStrictEqual(names(current), names(next))) this.atRestart.push(keyText(path));
    return current.map((entry, place) => {
      const changed = next.find(({ name }) => name === entry.name);
      return changed === undefined ? entry : this.merged(entry, changed, [...path, place]);
    });
  }

  /** `leaf`: a key, or a whole of keys, that stays as it is; `mixed`: some of what is in it can be exchanged. */
  private kindOf(path: Path): 'reload' | 'mixed' | 'leaf' | 'none' {
    const key = path.map((step) => (typeof step === 'number' ? '#' : step)).join('.');
    const below = this.leaves.filter(
      (leaf) => key === '' || leaf.key === key || leaf.key.startsWith(`${key}.`),
    );
    if (below.length > 0 && below.every(({ reload }) => reload)) return 'reload';
    if (below.some(({ reload }) => reload)) return 'mixed';
    return below.some((leaf) => leaf.key === key) ? 'leaf' : 'none';
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList(value: unknown): value is readonly Named[] {
  return Array.isArray(value);
}
