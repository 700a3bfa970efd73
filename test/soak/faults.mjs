import { setTimeout as sleep } from 'node:timers/promises';

/** How long a fault lasts, in ms; a backend that was killed is started again after that. */
const LASTS_MS = 4_000;
const BACKENDS = ['redis', 'postgres', 'kafka', 'rabbitmq'];

/**
 * Every fault by its name. `kill` and `pause` meet the process, `cut` breaks the connections and lets none in, `silence`
 * keeps them and passes nothing on.
 * @returns {Record<string, (lastsMs: number) => Promise<void>>}
 */
function faultsOf({ set, relays, gateway }) {
  const during = async (lastsMs, begin, end) => {
    await begin();
    try {
      await sleep(lastsMs);
    } finally {
      await end();
    }
  };
  const start = async (name) => {
    const { [name]: row } = await set.start([name]);
    if (row.state === 'failed') throw new Error(`${name} does not start again: ${row.reason}`);
  };
  const faults = {};
  for (const name of BACKENDS) {
    faults[`kill ${name}`] = (ms) =>
      during(
        ms,
        () => set.kill(name),
        () => start(name),
      );
    faults[`pause ${name}`] = (ms) =>
      during(
        ms,
        () => set.pause(name),
        () => set.resume(name),
      );
  }
  for (const [name, relay] of Object.entries(relays)) {
    faults[`cut ${name}`] = (ms) =>
      during(
        ms,
        () => relay.cut(),
        () => relay.release(),
      );
    faults[`silence ${name}`] = (ms) =>
      during(
        ms,
        () => relay.hold(),
        () => relay.release(),
      );
  }
  const worker = () => gateway.workers()[0];
  faults['kill worker'] = async () => {
    process.kill(worker(), 'SIGKILL');
  };
  faults['pause worker'] = (ms) => {
    const pid = worker();
    return during(
      ms,
      () => process.kill(pid, 'SIGSTOP'),
      () => process.kill(pid, 'SIGCONT'),
    );
  };
  return faults;
}

/** One after the other, in an order in which neighbours are of different backends. */
export const ORDER = [
  ...['kill redis', 'pause postgres', 'kill worker', 'cut rabbitmq', 'kill kafka', 'silence postgres'],
  ...['kill rabbitmq', 'pause worker', 'silence redis', 'kill postgres', 'pause kafka', 'cut redis'],
  ...['pause rabbitmq', 'cut postgres', 'silence rabbitmq', 'pause redis'],
];

/**
 * Makes one fault after the other.
 * @param {{everyMs: number, names: readonly string[], lastsMs?: number, untilMs: number, say: (line: string) => void}} plan
 * @returns {Promise<{name: string, from: number, to: number}[]>}
 */
export async function makeFaults(parts, { everyMs, names, lastsMs = LASTS_MS, untilMs, say }) {
  const faults = faultsOf(parts);
  const done = [];
  for (let i = 0; performance.now() + everyMs / 2 < untilMs; i++) {
    await sleep(Math.min(everyMs / 2, untilMs - performance.now()));
    const name = names[i % names.length];
    if (faults[name] === undefined)
      throw new Error(`no fault is called '${name}': ${Object.keys(faults).join(', ')}`);
    const from = performance.now();
    say(`fault: ${name}`);
    await faults[name](lastsMs);
    const to = performance.now();
    done.push({ name, from, to });
    await sleep(Math.max(0, Math.min(from + everyMs / 2, untilMs) - performance.now()));
  }
  return done;
}
