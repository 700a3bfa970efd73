import type { z } from 'zod';
import type { SettingMeta } from './settings.js';

/** One key of the configuration, found in its schema. */
export interface SettingLeaf {
  /** `['kv', 'databases', '#', 'token']`; `#` stands for a place in a list. */
  readonly path: readonly string[];
  readonly type: 'string' | 'number' | 'boolean' | 'list' | 'other';
  readonly description: string;
  /** `undefined` when the key must be given. */
  readonly byDefault: unknown;
  readonly secret: boolean;
  /** The gateway takes a new value while it runs. */
  readonly reload: boolean;
  /** Short variable for the first entry of a list. */
  readonly env: string | undefined;
}

/** The parts of zod's definitions that are looked at here. */
interface Definition {
  type: string;
  shape?: Record<string, z.ZodType>;
  element?: z.ZodType;
  innerType?: z.ZodType;
  in?: z.ZodType;
  defaultValue?: unknown;
}

const definitionOf = (schema: z.ZodType) => schema.def as unknown as Definition;

interface Unwrapped {
  schema: z.ZodType;
  byDefault: unknown;
  meta: SettingMeta & { description?: string };
}

/** Peels default, nullable, optional and pipes off a schema and collects what they say; what stands outside wins. */
function unwrap(schema: z.ZodType): Unwrapped {
  let current = schema;
  let byDefault: unknown;
  let meta: Unwrapped['meta'] = {};
  for (;;) {
    meta = { ...(current.meta() as Unwrapped['meta'] | undefined), ...meta };
    const definition = definitionOf(current);
    if (byDefault === undefined && 'defaultValue' in definition) byDefault = definition.defaultValue;
    const inner = definition.innerType ?? definition.in;
    if (inner === undefined) return { schema: current, byDefault, meta };
    current = inner;
  }
}

/** Every key of a configuration schema, in the order of the schema. */
export function settingLeaves(
  schema: z.ZodType,
  path: readonly string[] = [],
  reloads = false,
): SettingLeaf[] {
  const { schema: bare, byDefault, meta } = unwrap(schema);
  const definition = definitionOf(bare);
  const reload = reloads || meta.reload === true;
  if (definition.type === 'object') {
    return Object.entries(definition.shape ?? {}).flatMap(([key, value]) =>
      settingLeaves(value, [...path, key], reload),
    );
  }
  if (definition.type === 'array' && definition.element !== undefined) {
    const element = definitionOf(unwrap(definition.element).schema);
    if (element.type === 'object') return settingLeaves(definition.element, [...path, '#'], reload);
  }
  return [
    {
      path,
      type: leafType(definition.type),
      description: meta.description ?? '',
      byDefault,
      secret: meta.secret === true,
      reload,
      env: meta.env,
    },
  ];
}

function leafType(type: string): SettingLeaf['type'] {
  if (type === 'string' || type === 'enum' || type === 'literal') return 'string';
  if (type === 'number' || type === 'int') return 'number';
  if (type === 'boolean') return 'boolean';
  return type === 'array' ? 'list' : 'other';
}

/** The keys that an object of the schema at `path` may hold; for suggestions. */
export function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let current = unwrap(schema).schema;
  for (const step of path) {
    const definition = definitionOf(current);
    const next = definition.type === 'array' ? definition.element : definition.shape?.[String(step)];
    if (next === undefined) return [];
    current = unwrap(next).schema;
  }
  return Object.keys(definitionOf(current).shape ?? {});
}

/** `kv.databases[0].token` */
export function keyText(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, step) =>
      typeof step === 'number' ? `${text}[${step}]` : text === '' ? String(step) : `${text}.${String(step)}`,
    '',
  );
}

/** The one of `candidates` that is at most two edits from `word`, if any. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const scored = candidates.map((candidate) => ({ candidate, edits: editDistance(word, candidate) }));
  const best = scored.sort((a, b) => a.edits - b.edits)[0];
  return best !== undefined && best.edits <= Math.max(2, Math.floor(word.length / 3))
    ? best.candidate
    : undefined;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution =
        (row[j - 1] as number) + (a[i - 1]?.toLowerCase() === b[j - 1]?.toLowerCase() ? 0 : 1);
      next[j] = Math.min(substitution, (row[j] as number) + 1, (next[j - 1] as number) + 1);
    }
    row = next;
  }
  return row[b.length] as number;
}
