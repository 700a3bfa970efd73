/** The longest pause in ms that an expression can ask for. */
const MAX_DELAY_MS = 86_400_000;
/** Longer ones are refused. It bounds the nesting as well. */
const MAX_LENGTH = 500;

type Value = (retried: number) => number;

/** Functions with how many arguments they take: at least, at most. */
const FUNCTIONS: Readonly<Record<string, readonly [(...values: number[]) => number, number, number]>> = {
  pow: [Math.pow, 2, 2],
  exp: [Math.exp, 1, 1],
  sqrt: [Math.sqrt, 1, 1],
  abs: [Math.abs, 1, 1],
  floor: [Math.floor, 1, 1],
  ceil: [Math.ceil, 1, 1],
  round: [Math.round, 1, 1],
  min: [Math.min, 1, 20],
  max: [Math.max, 1, 20],
};

const TOKEN = /\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+|[a-z]+|[-+*/(),])/iy;

/**
 * Why `expression` is none that can say a pause: arithmetic (`+ - * /`, parentheses, `pow exp sqrt abs floor ceil round
 * min max`) over numbers and `retried`, such as `pow(2, retried) * 1000`. `undefined` when it is one.
 */
export function retryDelayProblem(expression: string): string | undefined {
  try {
    parse(expression);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * The pause in ms before the next retry, 0 to a day. `undefined` when the expression gives no number.
 * @param retried how often the message was retried so far: 0 before the first retry
 */
export function retryDelayMs(expression: string, retried: number): number | undefined {
  const value = parse(expression)(retried);
  return Number.isNaN(value) ? undefined : Math.round(Math.min(MAX_DELAY_MS, Math.max(0, value)));
}

function parse(expression: string): Value {
  if (expression.length > MAX_LENGTH) throw new Error(`is longer than ${MAX_LENGTH} characters`);
  const parser = new Parser(tokensOf(expression));
  const value = parser.sum();
  parser.end();
  return value;
}

function tokensOf(expression: string): string[] {
  const tokens: string[] = [];
  const text = expression.trimEnd();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const token = TOKEN.exec(text)?.[1];
    if (token === undefined) throw new Error(`is not understood from character ${at + 1} on`);
    tokens.push(token);
  }
  return tokens;
}

/** Recursive descent: sum = product (('+' | '-') product)*, product = factor (('*' | '/') factor)*. */
class Parser {
  private at = 0;

  constructor(private readonly tokens: readonly string[]) {}

  sum(): Value {
    let left = this.product();
    for (;;) {
      const before = left;
      if (this.took('+')) left = both(before, this.product(), (a, b) => a + b);
      else if (this.took('-')) left = both(before, this.product(), (a, b) => a - b);
      else return left;
    }
  }

  end(): void {
    const extra = this.tokens[this.at];
    if (extra !== undefined) throw new Error(`has "${extra}" where its end was expected`);
  }

  private product(): Value {
    let left = this.factor();
    for (;;) {
      const before = left;
      if (this.took('*')) left = both(before, this.factor(), (a, b) => a * b);
      else if (this.took('/')) left = both(before, this.factor(), (a, b) => a / b);
      else return left;
    }
  }

  private factor(): Value {
    if (this.took('-')) {
      const value = this.factor();
      return (retried) => -value(retried);
    }
    if (this.took('+')) return this.factor();
    if (this.took('(')) {
      const value = this.sum();
      this.expect(')');
      return value;
    }
    const token = this.tokens[this.at++];
    if (token === undefined) throw new Error('ends too early');
    if (/^[\d.]/.test(token)) return () => Number(token);
    if (token === 'retried') return (retried) => retried;
    return this.call(token);
  }

  private call(name: string): Value {
    const known = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
    if (known === undefined) throw new Error(`has "${name}", which is neither retried nor a known function`);
    this.expect('(');
    const values = [this.sum()];
    while (this.took(',')) values.push(this.sum());
    this.expect(')');
    const [apply, least, most] = known;
    if (values.length < least || values.length > most)
      throw new Error(`calls ${name} with ${values.length} arguments`);
    return (retried) => apply(...values.map((value) => value(retried)));
  }

  private took(token: string): boolean {
    if (this.tokens[this.at] !== token) return false;
    this.at += 1;
    return true;
  }

  private expect(token: string): void {
    if (!this.took(token)) throw new Error(`lacks a "${token}"`);
  }
}

function both(left: Value, right: Value, join: (a: number, b: number) => number): Value {
  return (retried) => join(left(retried), right(retried));
}
