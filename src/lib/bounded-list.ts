import { z } from 'zod';
import { inSlices, wholly } from './slices.js';

interface Bounds {
  readonly min?: number;
  readonly max: number;
  /** One element alone may stand without the array; `shown`: the documentation shows it, and tells of the array. */
  readonly orOne?: boolean | 'shown';
  /** What the elements are, for the error. */
  readonly of: string;
}

interface Issue {
  readonly path: PropertyKey[];
  readonly message: string;
}

type Outcome = { readonly elements: unknown[] } | { readonly issue: Issue };

/** How each bounded list is checked, for those who have a large one. */
const checks = new WeakMap<z.ZodType, (value: unknown) => Generator<void, Outcome>>();

/** A large list may rest after so many elements: 1 ms of the usual ones. */
const STEP = 100;

/**
 * An array whose length is judged before any of its elements, and whose first faulty element ends the check: zod's own array
 * looks at all of them and collects every issue, which took 28 s for a body of 3 MB.
 */
export function boundedList<S extends z.ZodType>(
  element: S,
  bounds: Bounds,
): z.ZodType<z.output<S>[], z.input<S>[]> {
  const check = (value: unknown) => checkElements(element, bounds, value);
  const schema = z
    .unknown()
    .transform((value, context) => {
      const outcome = wholly(check(value));
      if ('elements' in outcome) return outcome.elements;
      context.addIssue({ code: 'custom', path: [...outcome.issue.path], message: outcome.issue.message });
      return z.NEVER;
    })
    .meta(documented(element, bounds));
  checks.set(schema, check);
  return schema as unknown as z.ZodType<z.output<S>[], z.input<S>[]>;
}

/**
 * Checks a large value in slices where `schema` is a bounded list.
 * @returns `undefined` where it is none
 */
export function checkInSlices(schema: z.ZodType, value: unknown): Promise<Outcome> | undefined {
  const check = checks.get(schema);
  return check === undefined ? undefined : inSlices(check(value));
}

function* checkElements(element: z.ZodType, bounds: Bounds, value: unknown): Generator<void, Outcome> {
  const { min = 0, max, orOne = false, of } = bounds;
  const list = orOne !== false && !Array.isArray(value) ? [value] : value;
  const wrong = (message: string, path: PropertyKey[] = []) => ({ issue: { path, message } });
  if (!Array.isArray(list)) return wrong(`expected an array of ${of}`);
  if (list.length < min) return wrong(`expected at least ${min} ${of}`);
  if (list.length > max) return wrong(`expected at most ${max} ${of}, got ${list.length}`);
  const elements: unknown[] = [];
  for (let i = 0; i < list.length; i++) {
    const result = element.safeParse(list[i]);
    if (!result.success) {
      const [issue] = result.error.issues;
      return wrong(issue?.message ?? 'is not valid', [i, ...(issue?.path ?? [])]);
    }
    elements.push(result.data);
    if (i % STEP === STEP - 1) yield;
  }
  return { elements };
}

/** As JSON Schema, with one of the two forms: generators of clients make little of a choice. */
function documented(element: z.ZodType, { min, max, orOne, of }: Bounds): Record<string, unknown> {
  const list = { type: 'array', ...(min === undefined ? {} : { minItems: min }), maxItems: max };
  if (orOne === 'shown') return { ...shownAs(element), description: `Or an array of at most ${max} ${of}.` };
  const description = orOne === true ? { description: 'One alone may stand without the array.' } : {};
  return { ...list, items: shownAs(element), ...description };
}

function shownAs(element: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...shown } = z.toJSONSchema(element, { io: 'input', unrepresentable: 'any' }) as Record<
    string,
    unknown
  >;
  return shown;
}

/**
 * Headers, which are counted before `schema` looks at one of them. Where each has one text, that is taken as it is: zod makes
 * 0.6 MB of garbage of 1,000 of them.
 * @param schema of a record whose members may be texts, which it leaves as they are
 */
export function boundedHeaders<S extends z.ZodType<Readonly<Record<string, unknown>>>>(
  schema: S,
  max: number,
): z.ZodType<z.output<S>, z.input<S>> {
  // a long array is refused as what it is: its keys would be made first
  const few = (value: unknown) =>
    typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length <= max;
  const documented = shownAs(schema);
  const bounded = z
    .unknown()
    .refine(few, { error: `expected at most ${max} members`, abort: true })
    .transform((value, context) => {
      if (areTexts(value)) return value;
      const parsed = schema.safeParse(value);
      if (parsed.success) return parsed.data;
      for (const { path, message } of parsed.error.issues)
        context.addIssue({ code: 'custom', path: [...path], message });
      return z.NEVER;
    })
    .meta({ ...documented, maxProperties: max });
  return bounded as unknown as z.ZodType<z.output<S>, z.input<S>>;
}

function areTexts(value: unknown): boolean {
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) ||
    Object.hasOwn(value, '__proto__')
  )
    return false;
  for (const name in value) if (typeof (value as Record<string, unknown>)[name] !== 'string') return false;
  return true;
}
