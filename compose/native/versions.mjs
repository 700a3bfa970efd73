/**
 * Orders versions such as `8.0.6` by their numbers; what is missing counts as 0.
 * @param {string} a
 * @param {string} b
 * @returns {number} below 0: a is the older one
 */
export function compareVersions(a, b) {
  const [left, right] = [a.split('.'), b.split('.')];
  for (let place = 0; place < Math.max(left.length, right.length); place += 1) {
    const difference = Number(left[place] ?? 0) - Number(right[place] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
