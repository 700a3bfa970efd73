import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import type { z } from 'zod';
import { applyEnvironment, variableOf } from '../lib/settings/settings-environment.js';
import { resolveReferences } from '../lib/settings/settings-references.js';
import { keysAt, keyText, nearest } from '../lib/settings/settings-tree.js';
import { services } from '../services/index.js';
import type { ServiceConfig } from '../services/service.js';
import { crossChecks, incompleteness } from './checks.js';
import { type Config, configLeaves, configSchema, ENVIRONMENT_PREFIX, enabledServices } from './schema.js';
import { type KeyNames, type UnservedService, unservedServices, without } from './unserved-services.js';

/** Variables with the prefix that others than the gateway read or write: the start scripts and their card. */
const FOREIGN_VARIABLES = new RegExp(
  `^PORTICO_((${services.map(({ name }) => name.toUpperCase()).join('|')})_)?URL$|^PORTICO_(PORT_BASE|TEST_\\w+)$`,
);

/** Everything that is wrong with a configuration, one line each: where it stands, which key, why. */
export class ConfigError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(`The configuration is not usable:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

export interface LoadedConfig {
  readonly config: Config;
  /** Things that look wrong and do no harm. */
  readonly warnings: readonly string[];
  /** Services without an address of their backend. */
  readonly unserved: readonly UnservedService[];
}

export interface ConfigSource {
  /** Path of a YAML file. */
  readonly file?: string;
  /** A document instead of a file, for programs that embed the gateway. */
  readonly document?: Readonly<Record<string, unknown>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads file and environment (which wins, and may stand in the file as `${NAME}`) once.
 * @param complete for a gateway that runs: services without an address are switched off, the others need their tokens.
 *   Otherwise the start scripts may still add both.
 * @throws ConfigError naming every wrong key
 */
export function loadConfig(source: ConfigSource, complete = true): LoadedConfig {
  const file = source.file ?? 'configuration';
  const document =
    source.document === undefined ? readDocument(source.file) : structuredClone(source.document);
  const leaves = configLeaves();
  const unresolved = resolveReferences(document, leaves, source.environment);
  const applied = applyEnvironment(document, leaves, source.environment, ENVIRONMENT_PREFIX);
  const early = [...unresolved.map((problem) => `${file}: ${problem}`), ...applied.problems];
  if (early.length > 0) throw new ConfigError(early);
  const result = configSchema.safeParse(document);
  if (!result.success) throw new ConfigError(describeIssues(result.error.issues, file, applied.origins));
  const { http, log, console, traces, admin, ...sections } = result.data as Config &
    Record<string, ServiceConfig>;
  const services = sections as Record<string, ServiceConfig>;
  const whole: Config = { http, log, console, traces, admin, services };
  const names = keyNames(applied.origins);
  const unserved = unservedServices(enabledServices(whole), names);
  const config = complete ? without(whole, unserved) : whole;
  const enabled = enabledServices(config);
  const problems = crossChecks(config, enabled).map((problem) => `${file}: ${problem}`);
  if (complete)
    for (const { key, text } of incompleteness(config, enabled, unserved, names))
      problems.push(
        key === undefined ? `${file}: ${text}` : `${applied.origins.get(key) ?? file}: ${key}: ${text}`,
      );
  if (problems.length > 0) throw new ConfigError(problems);
  const warnings = applied.unknown
    .filter((name) => !FOREIGN_VARIABLES.test(name))
    .map((name) => `${name}: no key has this variable${suggestion(name, variableNames())}`);
  return { config: deepFreeze(config), warnings, unserved };
}

export function keyNames(origins: ReadonlyMap<string, string>): KeyNames {
  const leaves = configLeaves();
  return {
    variable: (key) => variableOf(key, leaves, ENVIRONMENT_PREFIX),
    isShared: (key) => leaves.filter(({ env }) => env !== undefined && env === origins.get(key)).length > 1,
  };
}

function readDocument(file: string | undefined): Record<string, unknown> {
  if (file === undefined) return {};
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError([`${file}: cannot be read (${(error as NodeJS.ErrnoException).code})`]);
  }
  const yaml = parseDocument(text);
  if (yaml.errors.length > 0)
    throw new ConfigError(yaml.errors.map((error) => `${file}: ${error.message.split('\n')[0]}`));
  const document = plainOf(yaml, file);
  if (typeof document !== 'object' || Array.isArray(document))
    throw new ConfigError([`${file}: expected keys and values`]);
  return document as Record<string, unknown>;
}

/** @throws ConfigError for an alias without its anchor, or so many that they would fill the memory */
function plainOf(yaml: ReturnType<typeof parseDocument>, file: string): unknown {
  try {
    return yaml.toJS() ?? {};
  } catch (error) {
    throw new ConfigError([`${file}: ${(error as Error).message}`]);
  }
}

function describeIssues(
  issues: readonly z.core.$ZodIssue[],
  file: string,
  origins: ReadonlyMap<string, string>,
): string[] {
  return issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      const known = keysAt(configSchema, issue.path);
      return issue.keys.map(
        (key) => `${file}: ${keyText([...issue.path, key])}: unknown key${suggestion(key, known)}`,
      );
    }
    const key = keyText(issue.path);
    return [`${origins.get(key) ?? file}: ${key}: ${issue.message}`];
  });
}

function suggestion(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

function variableNames(): string[] {
  return configLeaves().flatMap((leaf) => (leaf.env === undefined ? [] : [leaf.env]));
}

export function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
