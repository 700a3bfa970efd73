import { cpuUsage } from 'node:process';
import { Latencies } from '../latencies.mjs';

/**
 * ioredis without HTTP, in the process of the load: a contender that runs `operation` again and again, as often at once
 * as the others have connections.
 * @param {string} name
 * @param {(i: number) => Promise<boolean>} operation resolves to whether the reply was right
 * @returns {import('../frame.mjs').Contender}
 */
export function bareIoredis(name, operation) {
  return { name, server: thisProcess, run: (load) => repeat(operation, load) };
}

/** The load's own process, in the place of a server. */
export const thisProcess = {
  cpuSeconds: () => {
    const { user, system } = cpuUsage();
    return (user + system) / 1e6;
  },
  rssMegabytes: () => process.memoryUsage.rss() / 1_048_576,
};

async function repeat(operation, { connections, seconds }) {
  const run = { requests: 0, wrong: 0, seconds: 0, latencies: new Latencies() };
  const startedAt = performance.now();
  const end = startedAt + seconds * 1_000;
  const loop = async (_, i) => {
    for (let now = startedAt; now < end; ) {
      const right = await operation(i);
      const then = performance.now();
      run.latencies.add((then - now) * 1_000);
      run.requests += 1;
      if (!right) run.wrong += 1;
      now = then;
    }
  };
  await Promise.all(Array.from({ length: connections }, loop));
  run.seconds = (performance.now() - startedAt) / 1_000;
  return run;
}
