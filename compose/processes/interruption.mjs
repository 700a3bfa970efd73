import { setMaxListeners } from 'node:events';

/**
 * Whether the user wants out. A start that is interrupted stops waiting at once and then takes down what it began.
 */
const controller = new AbortController();

export const interruption = controller.signal;
// each download and each program that runs listens while it lasts
setMaxListeners(0, interruption);

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

/** How often it is looked whether npm is still there. */
const parentPollMs = 500;

/**
 * npm passes a signal to the shell that it runs scripts with, and some shells end without passing it on. So a script
 * that npm started takes the loss of its parent for the signal that it did not get.
 * @param {() => void} onLoss
 */
export function watchParent(onLoss) {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onLoss();
  }, parentPollMs);
  timer.unref();
}

/**
 * Turns the usual signals, and the end of the npm that started this script, into `interruption`. A later second signal
 * ends this process at once.
 * @param {(cause: string) => void} [onFirst]
 */
export function catchSignals(onFirst) {
  let first = 0;
  const interrupt = (cause) => {
    if (first !== 0) return;
    first = Date.now();
    onFirst?.(cause);
    controller.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      if (first !== 0 && Date.now() - first > sameSignalMs) {
        console.error('Ending at once. `npm stop` ends what is still running.');
        process.exit(130);
      }
      interrupt(`${signal} received`);
    });
  }
  watchParent(() => interrupt('npm has ended'));
  // Whoever read our output may be gone before us; stopping what we started matters more than saying so.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}

/** @returns {Promise<void>} settled when a signal has come */
export function interrupted() {
  return new Promise((resolve) => {
    if (interruption.aborted) resolve();
    else interruption.addEventListener('abort', () => resolve(), { once: true });
  });
}
