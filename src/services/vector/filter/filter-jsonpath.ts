import type { Filter, Glob, GlobPart, Literal, Path, Step } from './filter-ast.js';

/**
 * The filter as a jsonpath predicate for `metadata @@ $n::jsonpath`. In strict mode a missing key is an error, which
 * `@@` turns into NULL: no match, for negations as well. Holds for metadata that is never NULL.
 */
export function filterJsonpath(filter: Filter): string {
  return `strict ${predicate(filter)}`;
}

function predicate(filter: Filter): string {
  if ('of' in filter) return balanced(filter.of.map(predicate), filter.is === 'and' ? '&&' : '||');
  const path = pathText(filter.path);
  switch (filter.is) {
    case 'exists':
      return filter.negated ? `((exists(${path})) is unknown)` : `exists(${path})`;
    case 'equal':
      return filter.negated ? differsFromAll(path, [filter.value]) : equals(path, filter.value);
    case 'order':
      return `(${path} ${filter.order} ${numberText(filter.value)})`;
    case 'glob':
      return negatedIf(
        filter.negated,
        `(${path} like_regex ${JSON.stringify(globRegex(filter.glob))} flag "s")`,
      );
    case 'in':
      return filter.negated
        ? differsFromAll(path, filter.values)
        : `exists(${path} ? (${equalsOne('@', filter.values)}))`;
    case 'contains':
      // exists(...), because a strict `path[*] == value` is unknown for arrays of mixed types
      return negatedIf(filter.negated, `exists(${path}[*] ? (${equals('@', filter.value)}))`);
  }
}

/** The values of a field; of an array each element. In lax mode what is no array counts as one of it alone. */
export function valuesJsonpath(path: Path): string {
  return `lax ${pathText(path)}[*]`;
}

/** The value of a field alone. */
export function valueJsonpath(path: Path): string {
  return `strict ${pathText(path)}`;
}

const IS_SCALAR = '(@.type() == "string" || (@.type() == "number" || @.type() == "boolean"))';

/** What a filter finds, of that what has a text, number or boolean in a field, and none of `others`. */
export function groupsJsonpath(filter: Filter | undefined, path: Path, others: readonly Literal[]): string {
  const text = pathText(path);
  const conditions = [
    ...(filter === undefined ? [] : [predicate(filter)]),
    `exists(${text} ? ${IS_SCALAR})`,
    ...(others.length === 0 ? [] : [`!(exists(${text} ? (${equalsOne('@', others)})))`]),
  ];
  return `strict ${balanced(conditions, '&&')}`;
}

/** JSON null is neither equal to anything nor different from it. */
function differsFromAll(path: string, values: readonly Literal[]): string {
  return `(exists(${path} ? (@ != null)) && !(exists(${path} ? (${equalsOne('@', values)}))))`;
}

function equalsOne(operand: string, values: readonly Literal[]): string {
  return balanced(
    values.map((value) => equals(operand, value)),
    '||',
  );
}

function equals(operand: string, value: Literal): string {
  if (value === 1 || value === true) return `(${operand} == 1 || ${operand} == true)`;
  if (value === 0 || value === false) return `(${operand} == 0 || ${operand} == false)`;
  return `(${operand} == ${typeof value === 'string' ? JSON.stringify(value) : numberText(value as number)})`;
}

/** Operands in a tree of equal halves: Postgres descends into each level, and a chain of 1,000 would be as deep. */
function balanced(operands: readonly string[], operator: '&&' | '||'): string {
  if (operands.length === 1) return operands[0] as string;
  const middle = operands.length >> 1;
  return `(${balanced(operands.slice(0, middle), operator)} ${operator} ${balanced(operands.slice(middle), operator)})`;
}

function negatedIf(negated: boolean, text: string): string {
  return negated ? `!(${text})` : text;
}

function numberText(value: number): string {
  return value < 0 ? `(${value})` : String(value);
}

function pathText(path: Path): string {
  return `$${path.map(stepText).join('')}`;
}

function stepText(step: Step): string {
  if ('key' in step) return `.${JSON.stringify(step.key)}`;
  if ('place' in step) return `[${step.place}]`;
  return step.fromEnd === 1 ? '[last]' : `[last - (${step.fromEnd - 1})]`;
}

/** Postgres' regular expressions are matched without backtracking, so a pattern cannot run away. */
function globRegex(glob: Glob): string {
  return `^${glob.map(partRegex).join('')}$`;
}

function partRegex(part: GlobPart): string {
  if ('text' in part) return part.text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  if ('any' in part) return part.any === 'many' ? '.*' : '.';
  const member = (char: string) => char.replace(/[\\[\]^-]/, '\\$&');
  const members = part.ranges.map(([low, high]) =>
    low === high ? member(low) : `${member(low)}-${member(high)}`,
  );
  return `[${part.negated ? '^' : ''}${members.join('')}]`;
}

/** Whether the GIN index (jsonb_path_ops) finds the matches of a filter: it knows which values there are, not which there are not. */
export function isIndexed(filter: Filter): boolean {
  switch (filter.is) {
    case 'and':
      return filter.of.some(isIndexed);
    case 'or':
      return filter.of.every(isIndexed);
    case 'equal':
    case 'in':
    case 'contains':
      return !filter.negated;
    default:
      return false;
  }
}
