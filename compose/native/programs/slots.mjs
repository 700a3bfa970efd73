/**
 * Runs work as it is handed in, so many pieces at a time, first come first served.
 * @param {number} count
 * @returns {<T>(work: () => Promise<T>) => Promise<T>}
 */
export function createSlots(count) {
  const waiting = [];
  let free = count;
  return async (work) => {
    if (free === 0) await new Promise((resolve) => waiting.push(resolve));
    else free -= 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}
