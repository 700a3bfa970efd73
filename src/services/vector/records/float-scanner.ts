const [MINUS, PLUS, DOT, ZERO, NINE, COMMA, CLOSE] = [0x2d, 0x2b, 0x2e, 0x30, 0x39, 0x2c, 0x5d];
const [LOWER_E, UPPER_E, BLANK, TAB, LINE_FEED, RETURN] = [0x65, 0x45, 0x20, 0x09, 0x0a, 0x0d];

/** More digits change nothing that float32 could show. */
const DIGITS = 19;
/** 10^22 is the last power of ten that float64 holds exactly. */
const POWERS = Float64Array.from({ length: 23 }, (_, i) => 10 ** i);
/** Wider than what 19 digits summed up in float64 and one division can be off (6 roundings of 2^-53 each). */
const DOUBT = 2 ** -48;

/** Reads arrays of JSON numbers as float32. */
export class FloatScanner {
  floats: Float32Array;
  /** How many are in `floats`. */
  count = 0;
  /** Where reading goes on. */
  at = 0;

  /** @param bytes of the request */
  constructor(private readonly bytes: Buffer) {
    // 16 characters a number are usual; there is room for more when they are shorter
    this.floats = new Float32Array((bytes.length >> 4) + 16);
  }

  /**
   * Reads the array whose `[` is at `start`; afterwards `at` is behind its `]`.
   * @returns false when it holds anything but numbers as JSON writes them; then nothing has changed
   */
  array(start: number): boolean {
    const { bytes } = this;
    const before = this.count;
    this.at = start + 1;
    this.blanks();
    if (bytes[this.at] === CLOSE) {
      this.at++;
      return true;
    }
    while (this.number()) {
      this.blanks();
      const next = bytes[this.at++];
      if (next === CLOSE) return true;
      if (next !== COMMA) break;
      this.blanks();
    }
    this.count = before;
    return false;
  }

  private blanks(): void {
    const { bytes } = this;
    for (
      let c = bytes[this.at];
      c === BLANK || c === LINE_FEED || c === RETURN || c === TAB;
      c = bytes[this.at]
    )
      this.at++;
  }

  /**
   * Digits are summed up in float64, which may be off in its last places. Where that could change the float32 (one in
   * 16 million), JavaScript's own, exact conversion decides.
   */
  private number(): boolean {
    const { bytes } = this;
    const start = this.at;
    let i = start;
    const negative = bytes[i] === MINUS;
    if (negative) i++;
    let mantissa = 0;
    let digits = 0;
    let exponent = 0;
    const first = i;
    let c = bytes[i] as number;
    for (; c >= ZERO && c <= NINE; c = bytes[++i] as number) {
      if (digits < DIGITS) {
        mantissa = mantissa * 10 + (c - ZERO);
        if (mantissa > 0) digits++;
      } else exponent++;
    }
    // JSON has no empty number and no leading zero
    if (i === first || (i > first + 1 && bytes[first] === ZERO)) return false;
    if (c === DOT) {
      const fraction = i + 1;
      c = bytes[++i] as number;
      for (; c >= ZERO && c <= NINE; c = bytes[++i] as number) {
        if (digits < DIGITS) {
          mantissa = mantissa * 10 + (c - ZERO);
          if (mantissa > 0) digits++;
          exponent--;
        }
      }
      if (i === fraction) return false;
    }
    if (c === LOWER_E || c === UPPER_E) {
      const end = this.exponentEnd(i);
      if (end === undefined) return false;
      exponent += Number(bytes.toString('latin1', i + 1, end));
      i = end;
    }
    this.at = i;
    this.push(this.float(negative, mantissa, exponent, start));
    return true;
  }

  private exponentEnd(e: number): number | undefined {
    const { bytes } = this;
    let i = e + 1;
    if (bytes[i] === PLUS || bytes[i] === MINUS) i++;
    const first = i;
    while ((bytes[i] as number) >= ZERO && (bytes[i] as number) <= NINE) i++;
    return i === first ? undefined : i;
  }

  private float(negative: boolean, mantissa: number, exponent: number, start: number): number {
    if (exponent < -22 || exponent > 22) return this.exactly(start);
    const value =
      exponent < 0 ? mantissa / (POWERS[-exponent] as number) : mantissa * (POWERS[exponent] as number);
    if (Math.fround(value * (1 - DOUBT)) !== Math.fround(value * (1 + DOUBT))) return this.exactly(start);
    return negative ? -value : value;
  }

  private exactly(start: number): number {
    return Number(this.bytes.toString('latin1', start, this.at));
  }

  private push(value: number): void {
    if (this.count === this.floats.length) {
      const larger = new Float32Array(2 * this.floats.length);
      larger.set(this.floats);
      this.floats = larger;
    }
    this.floats[this.count++] = value;
  }
}
