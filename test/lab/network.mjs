import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const BRIDGE = 'porticolab';
const NET = '10.88.77';

/** Everything that this makes is called so, and is removed before it is made. */
const linkOf = (i) => `plab${i}`;
const spaceOf = (name) => `porticolab-${name}`;

/**
 * Machines of a network of their own: namespaces on one bridge, of which each has an address.
 * @param {readonly string[]} names
 */
export async function makeNetwork(names) {
  await removeNetwork(names);
  const ip = (...args) => run('ip', args);
  await ip('link', 'add', BRIDGE, 'type', 'bridge');
  await ip('addr', 'add', `${NET}.1/24`, 'dev', BRIDGE);
  await ip('link', 'set', BRIDGE, 'up');
  const machines = {};
  for (const [i, name] of names.entries()) machines[name] = await addMachine(ip, name, i);
  return { machines, remove: () => removeNetwork(names) };
}

async function addMachine(ip, name, i) {
  const [space, link, address] = [spaceOf(name), linkOf(i), `${NET}.${10 + i}`];
  await ip('netns', 'add', space);
  await ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space);
  await ip('link', 'set', link, 'master', BRIDGE, 'up');
  const inside = (...args) => ip('-n', space, ...args);
  await inside('addr', 'add', `${address}/24`, 'dev', 'eth0');
  await inside('link', 'set', 'eth0', 'up');
  await inside('link', 'set', 'lo', 'up');
  const signal = async (what) => {
    for (const pid of await pidsIn(space))
      try {
        process.kill(pid, what);
      } catch {
        // it has just ended
      }
  };
  return {
    name,
    address,
    /** Starts a program on it. */
    spawn: (file, args, options = {}) =>
      spawn('ip', ['netns', 'exec', space, file, ...args], { stdio: ['ignore', 'pipe', 'pipe'], ...options }),
    /** Runs one to its end. */
    run: (file, args, options = {}) => run('ip', ['netns', 'exec', space, file, ...args], options),
    kill: async () => {
      while ((await pidsIn(space)).length > 0) {
        await signal('SIGKILL');
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    /** Nothing goes in or out. */
    cut: () => ip('link', 'set', link, 'down'),
    heal: () => ip('link', 'set', link, 'up'),
    /** It hears the others and they do not hear it. */
    mute: () => inside('route', 'add', 'blackhole', `${NET}.0/25`),
    unmute: () => inside('route', 'del', 'blackhole', `${NET}.0/25`),
  };
}

async function pidsIn(space) {
  const { stdout } = await run('ip', ['netns', 'pids', space]);
  return stdout.split('\n').filter(Boolean).map(Number);
}

async function removeNetwork(names) {
  for (const [i, name] of names.entries()) {
    const space = spaceOf(name);
    const pids = await pidsIn(space).catch(() => []);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    // a namespace's own links go later, some time after it
    await run('ip', ['link', 'del', linkOf(i)]).catch(() => undefined);
    await run('ip', ['netns', 'del', space]).catch(() => undefined);
  }
  await run('ip', ['link', 'del', BRIDGE]).catch(() => undefined);
}
