import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 5;

export interface LoopWatch {
  /** The longest time so far, in ms, that the event loop stood still by this process' own work. */
  longestMs(): number;
  end(): void;
}

/** Watches the loop of this process: what others do on a busy machine, which takes no CPU time here, is no stop of it. */
export function watchLoop(): LoopWatch {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  let busiestMs = 0;
  let last = process.cpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(last);
    busiestMs = Math.max(busiestMs, (user + system) / 1_000);
    last = process.cpuUsage();
  }, RESOLUTION_MS);
  return {
    longestMs: () => Math.min(busiestMs, delay.max / 1e6),
    end: () => {
      clearInterval(timer);
      delay.disable();
    },
  };
}
