import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_MS = 1_000;
/** What the compiler and prepared statements still add after the first minutes. */
const HEAP_SHARE = 1.3;
const HEAP_MIB = 15;

/**
 * What the gateway holds when nobody asks for anything.
 * @param {import('./watch.mjs').Watch} watch
 */
export async function atRest(watch) {
  const { resources, heap, silent } = await watch.snapshots(true);
  const { backends, others } = watch.sockets();
  const [tables, rabbitmq, groups] = await Promise.all([watch.postgres(), watch.rabbitmq(), watch.groups()]);
  return { resources, heap, silent, backends, files: others, tables, rabbitmq, groups };
}

/**
 * Looks until the gateway holds no more than it did, or the time is over.
 * @param {{limitMs: number, spare: Record<string, number>, few: number, say: (line: string) => void}} how spare: connections by
 *   backend that it may have beside; few: of everything else
 * @returns what it holds more
 */
export async function untilAtRest(watch, before, { limitMs, spare, few, say }) {
  const end = performance.now() + limitMs;
  let told = '';
  for (;;) {
    const now = await atRest(watch);
    const findings = compare(before, now, spare, few);
    if (findings.length === 0 || performance.now() > end) return { now, findings };
    const words = findings.map((line) => line.replace(/[\d.]+/g, '')).join();
    if (words !== told) say(`not yet: ${findings.join('; ')}`);
    told = words;
    await sleep(LOOK_MS);
  }
}

function compare(before, now, spare, few) {
  const more = [];
  const check = (what, value, most) => {
    if (value > most)
      more.push(`at rest there are ${Math.round(value)} ${what}, expected at most ${Math.round(most)}`);
  };
  const total = ({ backends }) => Object.values(backends).reduce((sum, one) => sum + one, 0);
  for (const [name, count] of Object.entries(now.backends))
    check(`connections to ${name}`, count, before.backends[name] + (spare[name] ?? 0));
  for (const [name, count] of Object.entries(now.resources)) {
    // connections to backends are counted by themselves; one that is idle has a timer
    const isOfConnection = name === 'TCPSocketWrap' || name === 'Timeout';
    const allowed = isOfConnection ? Math.max(0, total(now) - total(before)) : 0;
    check(`of ${name}`, count, (before.resources[name] ?? 0) + few + allowed);
  }
  check('open files', now.files, before.files + few);
  check('MiB of heap', now.heap, before.heap * HEAP_SHARE + HEAP_MIB);
  check('tickets in RabbitMQ', now.rabbitmq.messages, before.rabbitmq.messages);
  check('queues in RabbitMQ', now.rabbitmq.queues, before.rabbitmq.queues);
  check(`groups with members (${now.groups.join(', ')})`, now.groups.length, 0);
  check('sessions that hold a transaction open', now.tables.stuck, 0);
  check('processes that do not answer', now.silent, 0);
  return more;
}
