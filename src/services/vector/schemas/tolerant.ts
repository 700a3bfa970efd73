import { z } from 'zod';

/** What came of a request that reads: keys that nobody here knows, where there were any. */
export interface Tolerated {
  readonly ignored?: readonly string[] | undefined;
}

/** As far from a known key as a slip of the finger. */
const SLIP = 2;

/** More unknown keys than this are no newer SDK's. */
const MAX_UNKNOWN = 20;

/** Keys of a request that would mean another reply, if they meant something. */
const NEVER = new Set(['namespace', 'ns', 'tenant', 'groupBy', 'groupSize']);

/**
 * The object of a request that only reads. Keys that newer SDKs may send are passed over and named in `ignored`; one that looks
 * like a mistyped known key is refused, because the reply would be another than was meant.
 */
export function tolerant<S extends z.ZodRawShape>(shape: S) {
  type Known = z.output<z.ZodObject<S>> & Tolerated;
  const strict = z.strictObject(shape);
  const known = new Map(Object.keys(shape).map((key) => [key, key.toLowerCase()]));
  const schema = z
    .unknown()
    .transform((value, context) => {
      const ignored = unknownKeys(value, known);
      const wrong = ignored.length > MAX_UNKNOWN ? ignored : ignored.filter((key) => isRefused(key, known));
      // what is refused stays, and is called by its name
      const parsed = strict.safeParse(wrong.length > 0 ? firstOf(wrong) : without(value, ignored));
      if (parsed.success) return ignored.length === 0 ? parsed.data : { ...parsed.data, ignored };
      for (const { path, message } of parsed.error.issues)
        context.addIssue({ code: 'custom', path: [...path], message });
      return z.NEVER;
    })
    .meta({ ...documented(strict), additionalProperties: true });
  return schema as unknown as z.ZodType<Known, z.input<z.ZodObject<S>>>;
}

const NONE: readonly string[] = [];

function unknownKeys(value: unknown, known: ReadonlyMap<string, string>): readonly string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return NONE;
  const keys = Object.keys(value);
  return keys.every((key) => known.has(key)) ? NONE : keys.filter((key) => !known.has(key));
}

const firstOf = (keys: readonly string[]) =>
  Object.fromEntries(keys.slice(0, 3).map((key) => [key.slice(0, 40), null]));

function without(value: unknown, keys: readonly string[]): unknown {
  if (keys.length === 0) return value;
  return Object.fromEntries(Object.entries(value as object).filter(([key]) => !keys.includes(key)));
}

function documented(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Record<
    string,
    unknown
  >;
  return rest;
}

function isRefused(key: string, known: ReadonlyMap<string, string>): boolean {
  if (NEVER.has(key)) return true;
  if (key.length > 64) return false;
  const lower = key.toLowerCase();
  for (const name of known.values()) if (isNear(lower, name)) return true;
  return false;
}

/** At most `SLIP` letters are missing, too many or others. Of short words less: most are as near to each other. */
function isNear(a: string, b: string): boolean {
  const most = Math.min(SLIP, Math.floor(b.length / 3));
  if (Math.abs(a.length - b.length) > most) return false;
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return (row[b.length] as number) <= most;
}
