/** Bytes of the character 0. */
const ZEROS = 0x30303030;

/** Four bytes as distances from the character 0, the first one lowest; behind the first that is no digit they mean nothing. */
export function distances(view: DataView, at: number): number {
  return (view.getInt32(at, true) - ZEROS) | 0;
}

/** Has the top bit of the first byte that is no digit (from 10 on, 0x76 more reaches it), and none below; 0 for four digits. */
export function nonDigits(distances: number): number {
  return (distances | (distances + 0x76767676)) & 0x80808080;
}

/** The number that four digits are: both pairs at once, then together. No step waits for a digit before. */
export function fourDigits(distances: number): number {
  const pairs = (Math.imul(distances, 10) + (distances >>> 8)) & 0xff00ff;
  return Math.imul(pairs, 0x640001) >>> 16;
}

/** How many digits stand at the beginning of the four bytes, without a branch to be guessed wrong. */
export function leadingDigits(distances: number): number {
  const none = nonDigits(distances);
  // 7, 15, 23 or 31 ones below the first bit, 32 where there is none
  return (32 - Math.clz32(~none & (none - 1))) >> 3;
}

const MASKS = Int32Array.of(0, 0xff, 0xffff, 0xffffff, -1);

/** The first `count` digits as those of a four-digit number, followed by zeros. */
export function padded(distances: number, count: number): number {
  return fourDigits(distances & (MASKS[count] as number));
}
