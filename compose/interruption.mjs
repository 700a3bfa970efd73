/**
 * Whether the user wants out. A start that is interrupted stops waiting at once and then takes down what it began.
 */
const controller = new AbortController();

export const interruption = controller.signal;

export class Interrupted extends Error {
  constructor() {
    super('interrupted');
    this.name = 'Interrupted';
  }
}

/** @throws {Interrupted} after a signal */
export function throwIfInterrupted() {
  if (interruption.aborted) throw new Interrupted();
}

/** A terminal's Ctrl-C reaches this process twice: from the terminal and from npm, which passes it on. */
const sameSignalMs = 1_500;

/**
 * Turns the usual signals into `interruption`. A later second one ends this process at once.
 * @param {(signal: NodeJS.Signals) => void} [onFirst]
 */
export function catchSignals(onFirst) {
  let first = 0;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      if (first === 0) {
        first = Date.now();
        onFirst?.(signal);
        controller.abort();
      } else if (Date.now() - first > sameSignalMs) {
        console.error('Ending at once. `npm stop` ends what is still running.');
        process.exit(130);
      }
    });
  }
}

/** @returns {Promise<void>} settled when a signal has come */
export function interrupted() {
  return new Promise((resolve) => {
    if (interruption.aborted) resolve();
    else interruption.addEventListener('abort', () => resolve(), { once: true });
  });
}
