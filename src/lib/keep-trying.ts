import { types } from 'node:util';
import { backoffDelay, DEFAULT_BACKOFF } from './backoff.js';
import type { ReleaseRegistry } from './lifecycle.js';
import type { Logger } from './logger.js';

export interface KeepTryingOptions {
  name: string;
  log: Logger;
  lifecycle: ReleaseRegistry;
  backoff?: typeof DEFAULT_BACKOFF;
}

/** What a background attempt has come to. `error` is the last failure while not yet done. */
export interface Progress {
  readonly done: boolean;
  readonly error: Error | undefined;
  /** Resolves at the first success; rejects never. Does not resolve when the gateway stops first. */
  readonly success: Promise<void>;
  /** What was done is gone: it is done again, unless that is under way or was just done. */
  redo(): void;
}

/** What is gone again so soon after it was done, in ms, is no accident: it waits for its turn. */
const REDO_PAUSE_MS = 2_000;

/**
 * Runs `attempt` in the background, with growing pauses, until it succeeds once or the gateway stops. For what a
 * service must do before its first request (migrations, topology) while its backend may still be away.
 */
export function keepTrying(attempt: () => Promise<void>, options: KeepTryingOptions): Progress {
  const state: { done: boolean; error: Error | undefined; stopped: boolean; redoFrom: number } = {
    done: false,
    error: undefined,
    stopped: false,
    redoFrom: 0,
  };
  let wake: (() => void) | undefined;
  options.lifecycle.onStop(`${options.name} (start-up)`, () => {
    state.stopped = true;
    wake?.();
  });

  const run = async () => {
    for (let tries = 0; !state.stopped; tries++) {
      try {
        await attempt();
        state.done = true;
        state.error = undefined;
        state.redoFrom = performance.now() + REDO_PAUSE_MS;
        return;
      } catch (error) {
        state.error = types.isNativeError(error) ? error : new Error(String(error));
        options.log.warn({ err: state.error, tries: tries + 1 }, `${options.name}: not ready, trying again`);
      }
      await new Promise<void>((resume) => {
        const timer = setTimeout(resume, backoffDelay(tries, options.backoff ?? DEFAULT_BACKOFF));
        wake = () => {
          clearTimeout(timer);
          resume();
        };
      });
    }
  };
  const success = new Promise<void>((resolve) => {
    void run().then(() => state.done && resolve());
  });

  return {
    get done() {
      return state.done;
    },
    get error() {
      return state.error;
    },
    success,
    redo: () => {
      if (!state.done || state.stopped || performance.now() < state.redoFrom) return;
      state.done = false;
      options.log.warn({}, `${options.name}: is gone, and made again`);
      void run();
    },
  };
}
