import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { backends } from '../../compose/backends/backends.mjs';
import { forgetEngine } from '../../compose/backends/engine.mjs';
import { portIsFree } from '../../compose/processes/ports.mjs';
import { readPidFile } from '../../compose/processes/processes.mjs';
import { forgetPorts, notePorts, profile, withPortBase } from '../../compose/state/profile.mjs';

/** Another checkout's tests may have the first block of ports. */
const blocks = 20;
const blockSize = 20;

export const allBackends = ['redis', 'postgres', 'kafka', 'rabbitmq'];

/** Names the process of an `npm run backends`. */
export const keeperFile = () => join(profile('test').run, 'keeper.pid');

/** Whether an `npm run backends` keeps the backends of the tests. */
export const areKept = () => readPidFile(keeperFile()) !== undefined;

/** Blocks of ports that nobody uses, one for each profile, noted for the programs that the tests start. */
async function chooseFreePorts(profiles) {
  const wished = process.env.PORTICO_PORT_BASE;
  // from now on the notes say it, to whatever is started
  delete process.env.PORTICO_PORT_BASE;
  const first = wished ? Number(wished) + 1000 : 19070;
  const rest = [...profiles];
  for (let block = 0; block < blocks && rest.length > 0; block += 1) {
    const p = withPortBase(rest[0], first + block * blockSize);
    const { gateway, ...ports } = p.ports;
    const free = await Promise.all(Object.values(ports).map(portIsFree));
    if (!free.every(Boolean)) continue;
    notePorts(p);
    rest.shift();
  }
  if (rest.length === 0) return;
  const last = first + blocks * blockSize;
  throw new Error(`too few free blocks of ports from ${first} to ${last}; set PORTICO_PORT_BASE`);
}

/**
 * Room for fresh backends, one set for each profile: what an earlier run left is ended, its data are forgotten, and
 * ports are chosen.
 * @param {readonly string[]} names of profiles
 */
export async function makeRoom(names) {
  for (const name of names) {
    const before = await backends(name);
    await before.stop();
    await before.reset();
    forgetPorts(before.profile);
  }
  await chooseFreePorts(names.map(profile));
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
