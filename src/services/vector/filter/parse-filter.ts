import type { Filter, Literal, Order, Path } from './filter-ast.js';
import { filterError, filterTokens, type Sign, type Token } from './filter-tokens.js';
import { parseGlob } from './parse-glob.js';
import { parsePath } from './parse-path.js';

/** Longest filter, deepest parentheses, most conditions and values: far from where Postgres' own parser gives up. */
export const MAX_LENGTH = 65_536;
export const MAX_DEPTH = 64;
export const MAX_OPERANDS = 1_000;

/**
 * The tree of a filter.
 * or := and ( OR and )*; and := condition ( AND condition )*; keywords in any case, and only where one can stand.
 * @throws HttpError 400 with the column and what was expected there
 */
export function parseFilter(text: string): Filter {
  if (text.length > MAX_LENGTH) throw filterError(MAX_LENGTH, `the end: at most ${MAX_LENGTH} characters`);
  const parser = new FilterParser(filterTokens(text));
  return parser.whole();
}

const ORDERS: ReadonlySet<string> = new Set<Order>(['<', '<=', '>', '>=']);

class FilterParser {
  private next = 0;
  private operands = 0;

  constructor(private readonly tokens: readonly Token[]) {}

  whole(): Filter {
    const filter = this.or(0);
    if (this.token.kind !== 'end') throw filterError(this.token.at, 'AND, OR or the end');
    return filter;
  }

  private get token(): Token {
    return this.tokens[this.next] as Token;
  }

  private or(depth: number): Filter {
    return this.joined('or', 'OR', () => this.joined('and', 'AND', () => this.condition(depth)));
  }

  private joined(is: 'and' | 'or', keyword: string, operand: () => Filter): Filter {
    const first = operand();
    if (!this.isKeyword(keyword)) return first;
    const of = [first];
    while (this.takeKeyword(keyword)) of.push(operand());
    return { is, of };
  }

  private condition(depth: number): Filter {
    const { token } = this;
    this.countOperand(token);
    if (this.takeSign('(')) {
      if (depth === MAX_DEPTH) throw filterError(token.at, `at most ${MAX_DEPTH} parentheses in each other`);
      const inner = this.or(depth + 1);
      if (!this.takeSign(')')) throw filterError(this.token.at, 'AND, OR or ")"');
      return inner;
    }
    return this.hasField() ?? this.comparison();
  }

  /** HAS counts only before FIELD or NOT FIELD; anywhere else it is a field's name. */
  private hasField(): Filter | undefined {
    if (!this.isKeyword('HAS')) return undefined;
    const negated = this.isKeyword('NOT', 1);
    if (!this.isKeyword('FIELD', negated ? 2 : 1)) return undefined;
    this.next += negated ? 3 : 2;
    return { is: 'exists', path: this.field('a field'), negated };
  }

  /** A text in quotes is one key, whatever is in it. */
  private field(expected: string): Path {
    const { token } = this;
    if (token.kind !== 'word' && token.kind !== 'string') throw filterError(token.at, expected);
    this.next++;
    return token.kind === 'string' ? [{ key: token.value }] : parsePath(token.text, token.at);
  }

  private comparison(): Filter {
    const path = this.field('a field or "("');
    const operator = this.token;
    if (operator.kind === 'sign') {
      const { text } = operator;
      if (text === '=' || text === '!=') {
        this.next++;
        return { is: 'equal', path, value: this.literal(), negated: text === '!=' };
      }
      if (ORDERS.has(text)) {
        this.next++;
        return { is: 'order', path, order: text as Order, value: this.number() };
      }
    }
    const negated = this.takeKeyword('NOT');
    if (this.takeKeyword('GLOB')) return { is: 'glob', path, glob: this.glob(), negated };
    if (this.takeKeyword('IN')) return { is: 'in', path, values: this.list(), negated };
    if (this.takeKeyword('CONTAINS')) return { is: 'contains', path, value: this.literal(), negated };
    const operators = negated ? 'GLOB, IN or CONTAINS' : '=, !=, <, <=, >, >=, GLOB, IN, CONTAINS or NOT';
    throw filterError(this.token.at, operators);
  }

  private literal(): Literal {
    const { token } = this;
    this.next++;
    if (token.kind === 'string' || token.kind === 'number') return token.value;
    if (token.kind === 'word' && /^(true|false)$/i.test(token.text)) return /^t/i.test(token.text);
    throw filterError(token.at, 'a quoted text, a number, true or false');
  }

  private number(): number {
    const { token } = this;
    this.next++;
    if (token.kind !== 'number') throw filterError(token.at, 'a number');
    return token.value;
  }

  private glob() {
    const { token } = this;
    this.next++;
    if (token.kind !== 'string') throw filterError(token.at, 'a pattern in quotes');
    return parseGlob(token.value, token.at);
  }

  private list(): Literal[] {
    if (!this.takeSign('(')) throw filterError(this.token.at, '"("');
    const values = [this.literal()];
    while (this.takeSign(',')) {
      this.countOperand(this.token);
      values.push(this.literal());
    }
    if (!this.takeSign(')')) throw filterError(this.token.at, '"," or ")"');
    return values;
  }

  private countOperand({ at }: Token): void {
    this.operands++;
    if (this.operands > MAX_OPERANDS) throw filterError(at, `at most ${MAX_OPERANDS} conditions and values`);
  }

  private isKeyword(keyword: string, ahead = 0): boolean {
    const token = this.tokens[this.next + ahead];
    return token?.kind === 'word' && token.text.toUpperCase() === keyword;
  }

  private takeKeyword(keyword: string): boolean {
    const found = this.isKeyword(keyword);
    if (found) this.next++;
    return found;
  }

  private takeSign(sign: Sign): boolean {
    const found = this.token.kind === 'sign' && this.token.text === sign;
    if (found) this.next++;
    return found;
  }
}
