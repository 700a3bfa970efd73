const [MINUS, PLUS, DOT, ZERO, NINE, COMMA, CLOSE] = [0x2d, 0x2b, 0x2e, 0x30, 0x39, 0x2c, 0x5d] as const;
const [LOWER_E, UPPER_E, BLANK, TAB, LINE_FEED, RETURN] = [0x65, 0x45, 0x20, 0x09, 0x0a, 0x0d];

/** So many blocks of four digits behind the dot show all of a float32. */
const BLOCKS = 4;
/** Longer whole numbers are left to JavaScript. */
const WHOLE_DIGITS = 9;
/** 10^22 is the last power of ten that float64 holds exactly. */
const POWERS = Float64Array.from({ length: 23 }, (_, i) => 10 ** i);
/** Wider than what up to 25 digits summed up in float64 and one division can be off (10 roundings of 2^-53 at most). */
const DOUBT = 2 ** -49;

/** Four digits as a number, -1 where there are fewer. No step waits for the one before: twice as fast as digit by digit. */
function four(bytes: Buffer, at: number): number {
  if (at + 4 > bytes.length) return -1;
  const a = (bytes[at] as number) - ZERO;
  const b = (bytes[at + 1] as number) - ZERO;
  const c = (bytes[at + 2] as number) - ZERO;
  const d = (bytes[at + 3] as number) - ZERO;
  // of 0 to 9 neither the number nor 6 more has a bit above the lowest four
  const high = (a | (a + 6) | b | (b + 6) | c | (c + 6) | d | (d + 6)) & ~15;
  return high === 0 ? a * 1_000 + b * 100 + c * 10 + d : -1;
}

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

  private number(): boolean {
    const { bytes } = this;
    const start = this.at;
    const first = bytes[start] === MINUS ? start + 1 : start;
    let i = first;
    let c = bytes[i] as number;
    let mantissa = 0;
    for (; c >= ZERO && c <= NINE; c = bytes[++i] as number) mantissa = mantissa * 10 + (c - ZERO);
    const whole = i - first;
    // JSON has no empty part and no leading zero
    if (whole === 0 || (whole > 1 && bytes[first] === ZERO)) return false;
    let exponent = 0;
    if (c === DOT) {
      const fraction = ++i;
      if (mantissa === 0) while (bytes[i] === ZERO) i++;
      let blocks = 0;
      for (let block = four(bytes, i); block >= 0 && blocks < BLOCKS; block = four(bytes, i)) {
        mantissa = mantissa * 10_000 + block;
        i += 4;
        blocks++;
      }
      c = bytes[i] as number;
      if (blocks < BLOCKS)
        for (; c >= ZERO && c <= NINE; c = bytes[++i] as number) mantissa = mantissa * 10 + (c - ZERO);
      exponent = fraction - i;
      while (c >= ZERO && c <= NINE) c = bytes[++i] as number;
      if (i === fraction) return false;
    }
    const end = c === LOWER_E || c === UPPER_E ? this.exponentEnd(i) : i;
    if (end === undefined) return false;
    if (end > i) exponent += Number(bytes.toString('latin1', i + 1, end));
    this.at = end;
    const size = whole > WHOLE_DIGITS ? Number.NaN : this.scaled(mantissa, exponent);
    this.push(
      Number.isNaN(size) ? Number(bytes.toString('latin1', start, end)) : first > start ? -size : size,
    );
    return true;
  }

  /**
   * The number, which may be off in its last places; NaN where that could change its float32 (one in 16 million), so that
   * JavaScript's own, exact conversion has to decide.
   */
  private scaled(mantissa: number, exponent: number): number {
    if (exponent < -22 || exponent > 22) return Number.NaN;
    const value =
      exponent < 0 ? mantissa / (POWERS[-exponent] as number) : mantissa * (POWERS[exponent] as number);
    return Math.fround(value * (1 - DOUBT)) === Math.fround(value * (1 + DOUBT)) ? value : Number.NaN;
  }

  private exponentEnd(e: number): number | undefined {
    const { bytes } = this;
    let i = e + 1;
    if (bytes[i] === PLUS || bytes[i] === MINUS) i++;
    const first = i;
    while ((bytes[i] as number) >= ZERO && (bytes[i] as number) <= NINE) i++;
    return i === first ? undefined : i;
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
