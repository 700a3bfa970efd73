import { existsSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { backends } from './backends.mjs';
import { forgetEngine } from './engine.mjs';
import { portIsFree } from './ports.mjs';
import { readPidFile } from './processes.mjs';
import { forgetPorts, makeFolders, notePorts, profile, root, withPortBase } from './profile.mjs';

/** Another checkout's tests may have the first block of ports. */
const blocks = 20;
const blockSize = 20;

export const allBackends = ['redis', 'postgres', 'kafka', 'rabbitmq'];

/** Names the process of an `npm run backends`. */
export const keeperFile = () => join(profile('test').run, 'keeper.pid');

/** Whether an `npm run backends` keeps the backends of the tests. */
export const areKept = () => readPidFile(keeperFile()) !== undefined;

/** What the tests of a service need, by how their files are called. */
const needs = {
  kv: ['redis'],
  vector: ['postgres'],
  broker: ['kafka'],
  queue: ['postgres', 'rabbitmq'],
  compose: [],
  package: ['redis'],
};

/** @param {string} path of a test file or a folder of them, from the root */
function needsOf(path) {
  if (/^test\/(unit|contract\/imports)/.test(path)) return [];
  const service = /^test\/(?:integration|acceptance)\/([a-z]+)/.exec(path)?.[1] ?? '';
  return needs[service] ?? allBackends;
}

/**
 * The backends that a run of the tests needs.
 * @param {string[]} args what jest is given; anything but names of files and folders may choose any test
 */
export function backendsFor(args) {
  const isPath = (arg) => existsSync(resolve(root, arg));
  if (args.length === 0 || !args.every(isPath)) return allBackends;
  const wanted = args.flatMap((arg) => needsOf(relative(root, resolve(root, arg))));
  return allBackends.filter((name) => wanted.includes(name));
}

/** The first block of ports that nobody uses, noted for the programs that the tests start. */
async function chooseFreePorts() {
  const first = profile('test');
  makeFolders(first);
  if (process.env.PORTICO_PORT_BASE) return;
  forgetPorts(first);
  for (let block = 0; block < blocks; block += 1) {
    const p = withPortBase(profile('test'), 19070 + block * blockSize);
    const { gateway, ...ports } = p.ports;
    const free = await Promise.all(Object.values(ports).map(portIsFree));
    if (free.every(Boolean)) return notePorts(p);
  }
  throw new Error(
    `no free block of ports from 19070 to ${19070 + blocks * blockSize}; set PORTICO_PORT_BASE`,
  );
}

/** Fresh backends: what an earlier run left is ended and its data forgotten. */
export async function freshBackends() {
  const before = await backends('test');
  await before.stop();
  await before.reset();
  await chooseFreePorts();
  return backends('test');
}

/** @throws {Error} with every reason when one does not start */
export async function startBackends(set, names, say) {
  if (names.length === 0) return;
  const results = await set.start(names, say);
  const failed = Object.entries(results).filter(([, row]) => row.state === 'failed');
  if (failed.length > 0) throw new Error(failed.map(([name, row]) => `${name}: ${row.reason}`).join('\n'));
}

/** Ends them and forgets their data. */
export async function dropBackends(set) {
  await set.stop();
  await set.reset();
  forgetPorts(set.profile);
  forgetEngine(set.profile);
  rmSync(keeperFile(), { force: true });
}
