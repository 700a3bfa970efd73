import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 5;

export interface LoopWatch {
  /** The longest time so far, in ms, that the event loop stood still by its own thread's work. */
  longestMs(): number;
  end(): void;
}

/** Watches the loop of this thread: what others do on a busy machine, this process' collectors too, takes no CPU time of it and is no stop. */
export function watchLoop(): LoopWatch {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  let busiestMs = 0;
  let last = process.threadCpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(last);
    busiestMs = Math.max(busiestMs, (user + system) / 1_000);
    last = process.threadCpuUsage();
  }, RESOLUTION_MS);
  return {
    longestMs: () => Math.min(busiestMs, delay.max / 1e6),
    end: () => {
      clearInterval(timer);
      delay.disable();
    },
  };
}
