/**
 * Prints steps with the seconds since the beginning, on standard error: the card alone goes to standard output.
 * @returns {(name: string, line: string) => void}
 */
export function createProgress() {
  const begin = performance.now();
  return (name, line) => {
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    console.error(`${seconds.padStart(6)} s  ${name.padEnd(9)} ${line}`);
  };
}
