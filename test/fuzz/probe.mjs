// Loaded into the gateway under test: tells its parent how long its event loop stood still.
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 5;
/** What was in the way when the question came is counted by the timers after it. */
const SETTLE_MS = 3 * RESOLUTION_MS;

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();

/** CPU time of this thread in ms: what others do on a busy machine is no stop of ours. Node 22 knows the process' only. */
const cpuMs = () => {
  const { user, system } = (process.threadCpuUsage ?? process.cpuUsage)();
  return (user + system) / 1_000;
};

/** The most CPU time, in ms, between two turns of the loop. */
let busiestMs = 0;
let lastMs = cpuMs();

function tick() {
  const now = cpuMs();
  busiestMs = Math.max(busiestMs, now - lastMs);
  lastMs = now;
  setTimeout(tick, RESOLUTION_MS).unref();
}
tick();

function reset() {
  delay.reset();
  busiestMs = 0;
  lastMs = cpuMs();
}

/** How long this machine takes for a fixed piece of work, in ms: the best of several. */
function calibration() {
  const text = JSON.stringify(Array.from({ length: 100_000 }, (_, i) => ({ id: `r${i}`, n: i })));
  const times = Array.from({ length: 7 }, () => {
    const start = cpuMs();
    JSON.parse(text);
    return cpuMs() - start;
  });
  return Math.min(...times);
}

process.on('message', (question) => {
  if (question === 'calibrate') {
    process.send({ ms: calibration() });
    reset();
    return;
  }
  if (question === 'collect') globalThis.gc?.();
  setTimeout(() => {
    process.send({ stopMs: Math.min(busiestMs, delay.max / 1e6), wallMs: delay.max / 1e6 });
    reset();
  }, SETTLE_MS);
});
process.channel.unref();
