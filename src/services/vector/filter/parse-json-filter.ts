import { HttpError } from '../../../http/errors.js';
import type { Filter, Literal, Order, Path } from './filter-ast.js';
import { MAX_DEPTH, MAX_LENGTH, MAX_OPERANDS } from './parse-filter.js';
import { parseGlob } from './parse-glob.js';
import { parsePath } from './parse-path.js';

type Conditions = Readonly<Record<string, unknown>>;

const ORDERS: Readonly<Record<string, Order>> = { $lt: '<', $lte: '<=', $gt: '>', $gte: '>=' };
const OPERATORS = '$eq, $ne, $lt, $lte, $gt, $gte, $in, $nin, $glob, $contains, $exists';

/**
 * The tree of a filter that was written as JSON: `{"genre": "drama", "year": {"$gte": 1990}}`, `{"$or": [...]}`. All members
 * must hold. Names of fields are paths as in a text filter.
 * @throws HttpError 400 with the place and what was expected there
 */
export function parseJsonFilter(filter: Conditions): Filter {
  return new JsonFilterParser().all(filter, 'filter', 0);
}

class JsonFilterParser {
  private operands = 0;

  all(conditions: Conditions, place: string, depth: number): Filter {
    const names = namesOf(conditions, place);
    if (names.length === 0) throw wrong(place, 'a field, $and or $or');
    return joined(
      'and',
      names.map((name) => this.member(name, conditions[name], place, depth)),
    );
  }

  private member(name: string, value: unknown, place: string, depth: number): Filter {
    this.countOperand(place);
    const here = `${place}.${name.slice(0, 100)}`;
    if (name === '$and' || name === '$or') {
      if (!Array.isArray(value) || value.length === 0) throw wrong(here, 'an array of conditions');
      if (depth === MAX_DEPTH) throw wrong(here, `at most ${MAX_DEPTH} of them in each other`);
      const of = value.map((one, i) =>
        this.all(asConditions(one, `${here}[${i}]`), `${here}[${i}]`, depth + 1),
      );
      return joined(name === '$and' ? 'and' : 'or', of);
    }
    if (name.startsWith('$')) throw wrong(here, 'a field, $and or $or');
    if (name.length > MAX_LENGTH) throw wrong(here, `a name of at most ${MAX_LENGTH} characters`);
    if (/[\0\p{Surrogate}]/u.test(name))
      throw wrong(here, 'a name without U+0000 and without lone surrogates');
    const path = parsePath(name, 0);
    if (typeof value !== 'object' || value === null)
      return { is: 'equal', path, value: literal(value, here), negated: false };
    const conditions = asConditions(value, here);
    const operators = namesOf(conditions, here);
    if (operators.length === 0) throw wrong(here, OPERATORS);
    return joined(
      'and',
      operators.map((operator) => this.comparison(path, operator, conditions[operator], here)),
    );
  }

  private comparison(path: Path, operator: string, operand: unknown, place: string): Filter {
    this.countOperand(place);
    const here = `${place}.${operator.slice(0, 100)}`;
    const order = Object.hasOwn(ORDERS, operator) ? ORDERS[operator] : undefined;
    if (order !== undefined) {
      if (typeof operand !== 'number') throw wrong(here, 'a number');
      return { is: 'order', path, order, value: finite(operand, here) };
    }
    switch (operator) {
      case '$eq':
      case '$ne':
        return { is: 'equal', path, value: literal(operand, here), negated: operator === '$ne' };
      case '$in':
      case '$nin':
        return { is: 'in', path, values: this.literals(operand, here), negated: operator === '$nin' };
      case '$glob':
        if (typeof operand !== 'string') throw wrong(here, 'a pattern');
        return { is: 'glob', path, glob: parseGlob(storable(operand, here), 0), negated: false };
      case '$contains':
        return { is: 'contains', path, value: literal(operand, here), negated: false };
      case '$exists':
        if (typeof operand !== 'boolean') throw wrong(here, 'true or false');
        return { is: 'exists', path, negated: !operand };
      default:
        throw wrong(here, OPERATORS);
    }
  }

  private literals(value: unknown, place: string): Literal[] {
    if (!Array.isArray(value) || value.length === 0) throw wrong(place, 'an array of values');
    return value.map((one, i) => {
      this.countOperand(place);
      return literal(one, `${place}[${i}]`);
    });
  }

  private countOperand(place: string): void {
    this.operands++;
    if (this.operands > MAX_OPERANDS) throw wrong(place, `at most ${MAX_OPERANDS} conditions and values`);
  }
}

function joined(is: 'and' | 'or', of: readonly Filter[]): Filter {
  return of.length === 1 ? (of[0] as Filter) : { is, of };
}

/** Counted before anything is made of them: 65,536 are the most of a body. */
function namesOf(conditions: Conditions, place: string): string[] {
  const names = Object.keys(conditions);
  if (names.length > MAX_OPERANDS) throw wrong(place, `at most ${MAX_OPERANDS} conditions and values`);
  return names;
}

function asConditions(value: unknown, place: string): Conditions {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(place, 'an object');
  return value as Conditions;
}

function literal(value: unknown, place: string): Literal {
  if (typeof value === 'string') return storable(value, place);
  if (typeof value === 'number') return finite(value, place);
  if (typeof value === 'boolean') return value;
  throw wrong(place, 'a text, a number, true or false');
}

function finite(value: number, place: string): number {
  if (!Number.isFinite(value)) throw wrong(place, 'a number that float64 can hold');
  // Postgres' JSON knows no -0
  return value === 0 ? 0 : value;
}

function storable(text: string, place: string): string {
  if (text.length > MAX_LENGTH) throw wrong(place, `a text of at most ${MAX_LENGTH} characters`);
  if (/[\0\p{Surrogate}]/u.test(text)) throw wrong(place, 'text without U+0000 and without lone surrogates');
  return text;
}

function wrong(place: string, expected: string): HttpError {
  return new HttpError('invalid_request', `${place}: expected ${expected}`);
}
