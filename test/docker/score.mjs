/** What is checked, one line each, as it happens. */
export function createScore(begin = Date.now()) {
  const counts = { passed: 0, failed: 0 };
  const say = (line) => console.log(`[${Math.round((Date.now() - begin) / 1000)} s] ${line}`);
  return {
    counts,
    say,
    /**
     * @param {string} name
     * @param {() => unknown} work
     * @returns {Promise<boolean>} whether it went well
     */
    async check(name, work) {
      const from = Date.now();
      try {
        await work();
        counts.passed += 1;
        say(`ok    ${name} (${((Date.now() - from) / 1000).toFixed(1)} s)`);
        return true;
      } catch (error) {
        counts.failed += 1;
        say(`FAIL  ${name}: ${error.message}`);
        return false;
      }
    },
  };
}

/** @throws {Error} with what was seen */
export function demand(condition, seen) {
  if (!condition) throw new Error(typeof seen === 'string' ? seen : JSON.stringify(seen));
}
