import fc from 'fast-check';

/**
 * Metadata filters as a straightforward program would evaluate them, and generators of both. Shares nothing with the
 * gateway's own parser: a filter here is a function and its text.
 */
export interface NaiveFilter {
  readonly text: string;
  readonly matches: (metadata: unknown) => boolean;
}

type Scalar = string | number | boolean;
type Step = string | number | { readonly fromEnd: number };

const MISSING = Symbol('missing');

function valueAt(value: unknown, steps: readonly Step[]): unknown {
  let current = value;
  for (const step of steps) {
    if (typeof step === 'string') {
      if (typeof current !== 'object' || current === null || Array.isArray(current)) return MISSING;
      if (!Object.hasOwn(current, step)) return MISSING;
      current = (current as Record<string, unknown>)[step];
    } else {
      if (!Array.isArray(current)) return MISSING;
      const place = typeof step === 'number' ? step : current.length - step.fromEnd;
      if (place < 0 || place >= current.length) return MISSING;
      current = current[place];
    }
  }
  return current;
}

const asNumber = (value: unknown) => (typeof value === 'boolean' ? Number(value) : value);
const isKnown = (value: unknown) => value !== MISSING && value !== null;
const equal = (value: unknown, literal: Scalar) => isKnown(value) && asNumber(value) === asNumber(literal);

/** A pattern against the whole text, by code points. */
function globMatches(pattern: readonly string[], text: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return text.length === 0;
  if (first === '*')
    return globMatches(rest, text) || (text.length > 0 && globMatches(pattern, text.slice(1)));
  const [char, ...others] = text;
  if (char === undefined) return false;
  if (first === '?') return globMatches(rest, others);
  if (first !== '[') return first === char && globMatches(rest, others);
  let i = 1;
  const negated = pattern[i] === '^';
  if (negated) i++;
  let inside = false;
  for (let begin = i; i === begin || pattern[i] !== ']'; i++) {
    const low = pattern[i] as string;
    if (pattern[i + 1] === '-' && pattern[i + 2] !== ']') {
      inside ||= low <= char && char <= (pattern[i + 2] as string);
      i += 2;
    } else inside ||= low === char;
  }
  return inside !== negated && globMatches(pattern.slice(i + 1), others);
}

const KEYS = ['a', 'b', 'tags', 'x-y', 'and', 'has', '_n1'];
const STRINGS = [
  '',
  'a',
  'b',
  'ab',
  'A',
  "it's",
  'say "hi"',
  'back\\slash',
  'é\u{1f600}',
  'line\nbreak',
  '1',
  'true',
  'a.b*[c]^$',
];
const NUMBERS = [0, 1, -1, 2.5, 1e21, -0.001, 7];

const scalar = fc.oneof(
  fc.constantFrom<Scalar>(...STRINGS),
  fc.constantFrom<Scalar>(...NUMBERS),
  fc.boolean(),
);

/** Metadata with the keys and values that the filters ask about. */
export const metadata: fc.Arbitrary<Record<string, unknown>> = fc.letrec<{
  value: unknown;
  object: Record<string, unknown>;
}>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2, depthIdentifier: 'metadata' },
    scalar,
    fc.constant(null),
    fc.array(fc.oneof(scalar, fc.constant(null), tie('value')), {
      maxLength: 3,
      depthIdentifier: 'metadata',
    }),
    tie('object'),
  ),
  object: fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 4, depthIdentifier: 'metadata' }),
})).object;

const path = fc
  .tuple(
    fc.constantFrom(...KEYS),
    fc.array(
      fc.oneof(
        fc.constantFrom<Step>(...KEYS),
        fc.nat({ max: 2 }).map((place): Step => place),
        fc.nat({ max: 2 }).map((fromEnd): Step => ({ fromEnd })),
      ),
      { maxLength: 2 },
    ),
  )
  .map(([key, steps]) => [key, ...steps] as Step[]);

function pathText(steps: readonly Step[]): string {
  return steps
    .map((step, i) => {
      if (typeof step === 'string') return i === 0 ? step : `.${step}`;
      return typeof step === 'number' ? `[${step}]` : `[#-${step.fromEnd}]`;
    })
    .join('');
}

/** Each way of writing a text. */
const quoted = (text: string) =>
  fc.constantFrom(
    `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`,
    `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`,
    `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`,
  );

const literal = scalar.chain((value) =>
  (typeof value === 'string'
    ? quoted(value)
    : fc.constantFrom(String(value), typeof value === 'boolean' ? String(value).toUpperCase() : String(value))
  ).map((text) => ({ value, text })),
);

const keyword = (word: string) => fc.constantFrom(word, word.toLowerCase());

const PATTERNS = [
  '*',
  '?',
  'a*',
  '*b',
  '[ab]',
  '[^a]*',
  '[a-c]?',
  '*.b[*][[]c]*',
  'line*break',
  '*[]]*',
  "it's",
  'A',
  '[a-]*',
  '?*?',
];

const leaf: fc.Arbitrary<NaiveFilter> = fc.oneof(
  fc.tuple(path, literal, fc.boolean()).map(([p, { value, text }, negated]) => ({
    text: `${pathText(p)} ${negated ? '!=' : '='} ${text}`,
    matches: (m: unknown) => {
      const found = valueAt(m, p);
      return negated ? isKnown(found) && !equal(found, value) : equal(found, value);
    },
  })),
  fc
    .tuple(path, fc.constantFrom('<', '<=', '>', '>='), fc.constantFrom(...NUMBERS))
    .map(([p, operator, n]) => ({
      text: `${pathText(p)}${operator}${n}`,
      matches: (m: unknown) => {
        const found = valueAt(m, p);
        if (typeof found !== 'number') return false;
        if (operator === '<') return found < n;
        if (operator === '<=') return found <= n;
        return operator === '>' ? found > n : found >= n;
      },
    })),
  fc.tuple(path, fc.constantFrom(...PATTERNS), fc.boolean()).chain(([p, pattern, negated]) =>
    fc.tuple(quoted(pattern), keyword('NOT'), keyword('GLOB')).map(([text, not, glob]) => ({
      text: `${pathText(p)} ${negated ? `${not} ` : ''}${glob} ${text}`,
      matches: (m: unknown) => {
        const found = valueAt(m, p);
        return typeof found === 'string' && globMatches([...pattern], [...found]) !== negated;
      },
    })),
  ),
  fc
    .tuple(path, fc.array(literal, { minLength: 1, maxLength: 4 }), fc.boolean(), keyword('IN'))
    .map(([p, values, negated, word]) => ({
      text: `${pathText(p)} ${negated ? 'NOT ' : ''}${word} (${values.map(({ text }) => text).join(',')})`,
      matches: (m: unknown) => {
        const found = valueAt(m, p);
        const isOne = values.some(({ value }) => equal(found, value));
        return negated ? isKnown(found) && !isOne : isOne;
      },
    })),
  fc.tuple(path, literal, fc.boolean(), keyword('CONTAINS')).map(([p, { value, text }, negated, word]) => ({
    text: `${pathText(p)} ${negated ? 'not ' : ''}${word} ${text}`,
    matches: (m: unknown) => {
      const found = valueAt(m, p);
      return Array.isArray(found) && found.some((element) => equal(element, value)) !== negated;
    },
  })),
  fc.tuple(path, fc.boolean()).map(([p, negated]) => ({
    text: `HAS ${negated ? 'NOT ' : ''}FIELD ${pathText(p)}`,
    matches: (m: unknown) => (valueAt(m, p) === MISSING) === negated,
  })),
);

/** Filters of the whole grammar. AND binds tighter than OR, so only an OR inside an AND needs parentheses. */
export const naiveFilter: fc.Arbitrary<NaiveFilter> = fc.letrec<{ filter: NaiveFilter; and: NaiveFilter }>(
  (tie) => ({
    filter: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'filter' },
      tie('and'),
      fc.array(tie('and'), { minLength: 2, maxLength: 3, depthIdentifier: 'filter' }).map((parts) => ({
        text: parts.map(({ text }) => text).join(' OR '),
        matches: (m: unknown) => parts.some(({ matches }) => matches(m)),
      })),
    ),
    and: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'filter' },
      leaf,
      fc
        .array(fc.oneof(leaf, tie('filter').map(inParentheses)), {
          minLength: 2,
          maxLength: 3,
          depthIdentifier: 'filter',
        })
        .map((parts) => ({
          text: parts.map(({ text }) => text).join(' and '),
          matches: (m: unknown) => parts.every(({ matches }) => matches(m)),
        })),
    ),
  }),
).filter;

function inParentheses({ text, matches }: NaiveFilter): NaiveFilter {
  return { text: `( ${text})`, matches };
}
