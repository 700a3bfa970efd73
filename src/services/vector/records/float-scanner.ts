import { MAX_DIMENSION } from '../score.js';

const [MINUS, PLUS, DOT, ZERO, NINE, COMMA, CLOSE] = [0x2d, 0x2b, 0x2e, 0x30, 0x39, 0x2c, 0x5d] as const;
const [LOWER_E, UPPER_E, BLANK, TAB, LINE_FEED, RETURN] = [0x65, 0x45, 0x20, 0x09, 0x0a, 0x0d];

/** So many blocks of four digits behind the dot show all of a float32. */
const BLOCKS = 4;
/** Longer whole numbers are left to JavaScript. */
const WHOLE_DIGITS = 9;
/** Longest number, and most blanks in one place, in bytes: longer ones, which nobody writes, are JSON.parse's. */
const LONGEST = 1_024;
/** Most numbers of an array: as many components as a vector of any index may have. */
const MOST = MAX_DIMENSION;
/** 10^22 is the last power of ten that float64 holds exactly. */
const POWERS = Float64Array.from({ length: 23 }, (_, i) => 10 ** i);
/** Wider than what up to 25 digits summed up in float64 and one division can be off (10 roundings of 2^-53 at most). */
const DOUBT = 2 ** -49;

/** `0.` as 16 bits, the first byte lowest. */
const ZERO_DOT = 0x2e30;
/** What twelve digits behind the dot are parts of. */
const TWELFTH = 1e-12;
/** Bytes that a look at a usual number touches: sign, `0.`, 12 digits, 8 further ones, what follows. */
const ROOM = 1 + 2 + 12 + 8 + 2;

/** Reads arrays of JSON numbers as float32. */
export class FloatScanner {
  /** Is replaced when it is full; outlives the scanner and its bytes. */
  readonly store: { floats: Float32Array };
  /** How many are in the store. */
  count = 0;
  /** Where reading goes on. */
  at = 0;
  /** So many numbers are not exceeded by a run of usual ones. */
  private stop = 0;
  private readonly view: DataView;

  /** @param bytes of the request */
  constructor(private readonly bytes: Buffer) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    // 16 characters a number are usual; there is room for more when they are shorter
    this.store = { floats: new Float32Array((bytes.length >> 4) + 16) };
  }

  /**
   * Reads the array whose `[` is at `start`; afterwards `at` is behind its `]`.
   * @returns false when it holds anything but numbers as JSON writes them, or too many; then nothing has changed
   */
  array(start: number): boolean {
    const { bytes } = this;
    const before = this.count;
    this.at = start + 1;
    this.blanks();
    this.stop = before + MOST + 1;
    if (bytes[this.at] === CLOSE) {
      this.at++;
      return true;
    }
    while (!this.usual()) {
      this.blanks();
      const next = this.number() ? this.separator() : undefined;
      if (next === CLOSE) return true;
      if (next === COMMA && this.count - before <= MOST) continue;
      this.count = before;
      return false;
    }
    if (this.count - before <= MOST) return true;
    this.count = before;
    return false;
  }

  /**
   * Reads on as long as numbers are such as `-0.0392812341451644`: one digit, a dot, up to 20 digits. Takes 22 ns for each
   * where `number` takes 55, because the processor has neither sign nor length to guess.
   * @returns whether that was the end of the array; otherwise `number` has to decide what comes next
   */
  private usual(): boolean {
    const { bytes, view } = this;
    const { floats } = this.store;
    const last = bytes.length - ROOM;
    let { at, count } = this;
    let ended = false;
    const full = Math.min(this.stop, floats.length);
    while (!ended && at <= last && count < full) {
      const first = bytes[at] as number;
      // '-' lacks the fifth bit, which all digits have
      const negative = ((first >> 4) & 1) ^ 1;
      const start = at + negative;
      const whole = view.getInt16(start, true) - ZERO_DOT;
      if ((first - MINUS) * negative !== 0 || whole < 0 || whole > 9) break;
      const a = distances(view, start + 2);
      const b = distances(view, start + 6);
      const c = distances(view, start + 10);
      const inA = leadingDigits(a);
      const inB = leadingDigits(b) * (inA >> 2);
      const inC = leadingDigits(c) * (inB >> 2);
      const inD = leadingDigits(distances(view, start + 14)) * (inC >> 2);
      const inE = leadingDigits(distances(view, start + 18)) * (inD >> 2);
      const end = start + 2 + inA + inB + inC + inD + inE;
      const mantissa =
        ((whole * 10_000 + padded(a, inA)) * 10_000 + padded(b, inB)) * 10_000 + padded(c, inC);
      const scale = TWELFTH * (1 - 2 * negative);
      const float = Math.fround((mantissa - 1) * scale);
      const next = bytes[end];
      // the other digits make it at most 1 more; where that could change the float32 (one in 10,000), `number` decides
      if (inA === 0 || (next !== COMMA && next !== CLOSE) || float !== Math.fround((mantissa + 2) * scale))
        break;
      floats[count++] = float;
      ended = next === CLOSE;
      at = end + 1;
      if (bytes[at] === BLANK) at++;
    }
    this.at = at;
    this.count = count;
    return ended;
  }

  /** The byte behind blanks. */
  private separator(): number | undefined {
    this.blanks();
    return this.bytes[this.at++];
  }

  private blanks(): void {
    const { bytes } = this;
    const end = this.at + LONGEST;
    for (
      let c = bytes[this.at];
      (c === BLANK || c === LINE_FEED || c === RETURN || c === TAB) && this.at < end;
      c = bytes[this.at]
    )
      this.at++;
  }

  private number(): boolean {
    const { bytes, view } = this;
    const start = this.at;
    const first = bytes[start] === MINUS ? start + 1 : start;
    let i = first;
    let c = bytes[i] as number;
    let mantissa = 0;
    const last = start + LONGEST;
    for (; c >= ZERO && c <= NINE && i < last; c = bytes[++i] as number)
      mantissa = mantissa * 10 + (c - ZERO);
    const whole = i - first;
    // JSON has no empty part and no leading zero
    if (whole === 0 || (whole > 1 && bytes[first] === ZERO)) return false;
    let exponent = 0;
    if (c === DOT) {
      const fraction = ++i;
      if (mantissa === 0) while (bytes[i] === ZERO && i < last) i++;
      let blocks = 0;
      for (; blocks < BLOCKS && i <= bytes.length - 4; i += 4, blocks++) {
        const block = distances(view, i);
        if (nonDigits(block) !== 0) break;
        mantissa = mantissa * 10_000 + fourDigits(block);
      }
      c = bytes[i] as number;
      if (blocks < BLOCKS)
        for (; c >= ZERO && c <= NINE; c = bytes[++i] as number) mantissa = mantissa * 10 + (c - ZERO);
      exponent = fraction - i;
      while (c >= ZERO && c <= NINE && i < last) c = bytes[++i] as number;
      if (i === fraction) return false;
    }
    if (i >= last) return false;
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
    const last = first + LONGEST;
    while ((bytes[i] as number) >= ZERO && (bytes[i] as number) <= NINE && i < last) i++;
    return i === first || i === last ? undefined : i;
  }

  private push(value: number): void {
    const { store } = this;
    if (this.count === store.floats.length) {
      const larger = new Float32Array(2 * store.floats.length);
      larger.set(store.floats);
      store.floats = larger;
    }
    store.floats[this.count++] = value;
  }
}

/** Bytes of the character 0. */
const ZEROS = 0x30303030;

/** Four bytes as distances from the character 0, the first one lowest; behind the first that is no digit they mean nothing. */
function distances(view: DataView, at: number): number {
  return (view.getInt32(at, true) - ZEROS) | 0;
}

/** Has the top bit of the first byte that is no digit (from 10 on, 0x76 more reaches it), and none below; 0 for four digits. */
function nonDigits(distances: number): number {
  return (distances | (distances + 0x76767676)) & 0x80808080;
}

/** The number that four digits are: both pairs at once, then together. No step waits for a digit before. */
function fourDigits(distances: number): number {
  const pairs = (Math.imul(distances, 10) + (distances >>> 8)) & 0xff00ff;
  return Math.imul(pairs, 0x640001) >>> 16;
}

/** How many digits stand at the beginning of the four bytes, without a branch to be guessed wrong. */
function leadingDigits(distances: number): number {
  const none = nonDigits(distances);
  // 7, 15, 23 or 31 ones below the first bit, 32 where there is none
  return (32 - Math.clz32(~none & (none - 1))) >> 3;
}

const MASKS = Int32Array.of(0, 0xff, 0xffff, 0xffffff, -1);

/** The first `count` digits as those of a four-digit number, followed by zeros. */
function padded(distances: number, count: number): number {
  return fourDigits(distances & (MASKS[count] as number));
}
