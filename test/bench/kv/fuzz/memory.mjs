import { setTimeout as sleep } from 'node:timers/promises';

/** For the node that runs the gateway. */
export const GC_ARGUMENTS = ['--expose-gc', '--import', './test/bench/kv/fuzz/gc-on-signal.mjs'];

/** What may be kept after all requests: names of commands, histograms, compiled code. */
const HEAP_MB = 40;
/** Freed memory need not go back to the system at once. */
const RSS_MB = 200;
const SETTLE_MS = 300;

/**
 * What the gateway holds when it has nothing to do: its heap and buffers, and its resident memory, in MB. The
 * collector is in no hurry: after a request of 100,000 rows it keeps the garbage for minutes.
 * @param {Awaited<ReturnType<typeof import('../servers.mjs').startGateway>>} gateway
 */
export async function heldBy(gateway) {
  // the second collection takes what the first only let go of
  for (let i = 0; i < 2; i++) {
    process.kill(gateway.pid, 'SIGUSR2');
    await sleep(SETTLE_MS);
  }
  const metrics = await (await fetch(`http://127.0.0.1:${gateway.port}/metrics`)).text();
  const megabytes = (name) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(metrics)?.[1]) / 1_048_576;
  return {
    heap: megabytes('nodejs_heap_size_used_bytes') + megabytes('nodejs_external_memory_bytes'),
    rss: gateway.rssMegabytes(),
  };
}

/**
 * What has grown between two looks beyond what it may.
 * @param {Awaited<ReturnType<typeof heldBy>>} before
 * @param {Awaited<ReturnType<typeof heldBy>>} after
 * @returns {string[]}
 */
export function growth(before, after) {
  const grown = (name, from, to, most) =>
    to - from > most ? [`${name} grew from ${from.toFixed(0)} to ${to.toFixed(0)} MB`] : [];
  return [
    ...grown('the heap', before.heap, after.heap, HEAP_MB),
    ...grown('resident memory', before.rss, after.rss, RSS_MB),
  ];
}
