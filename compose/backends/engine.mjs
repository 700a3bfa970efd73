import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from '../processes/run-program.mjs';

/** A Docker client without an engine answers at once or hangs on its socket; an engine answers in far less. */
const answerLimitMs = 3_000;

/** @returns {Promise<string | undefined>} why containers cannot be started here */
async function whyNoDocker() {
  const ask = (args) => runProgram('docker', args, { timeoutMs: answerLimitMs });
  try {
    // `docker info` alone exits with 0 in some versions although no server answered.
    if ((await ask(['info', '--format', '{{.ServerVersion}}'])).trim() === '') return 'no engine answers';
    await ask(['compose', 'version']);
    return undefined;
  } catch (error) {
    return error.message;
  }
}

/** The user's wish. @returns {'docker' | 'native' | undefined} @throws {Error} when it is neither */
function wished() {
  const wish = process.env.PORTICO_BACKENDS || undefined;
  if (wish === undefined || wish === 'docker' || wish === 'native') return wish;
  throw new Error(`PORTICO_BACKENDS must be docker or native, not '${wish}'`);
}

const noteOf = (p) => join(p.run, 'engine');

/** Forgets which way the backends run; for when none runs any more. */
export function forgetEngine(p) {
  rmSync(noteOf(p), { force: true });
}

/**
 * How the backends of a profile run: as its last start decided, so that a stop finds them; else by PORTICO_BACKENDS;
 * else by whether a Docker engine answers.
 * @param {import('../state/profile.mjs').Profile} p
 * @returns {Promise<'docker' | 'native'>}
 * @throws {Error} when neither way is open on this system
 */
export async function chooseEngine(p) {
  const noted = notedEngine(p);
  if (noted !== undefined) return noted;
  const engine = wished() ?? ((await whyNoDocker()) === undefined ? 'docker' : 'native');
  if (engine === 'native' && process.platform !== 'linux') {
    throw new Error('no Docker engine answers, and without one the backends can be started on Linux only');
  }
  return engine;
}

/** @returns {'docker' | 'native' | undefined} */
function notedEngine(p) {
  const noted = existsSync(noteOf(p)) ? readFileSync(noteOf(p), 'utf8').trim() : undefined;
  return noted === 'docker' || noted === 'native' ? noted : undefined;
}

/**
 * For a start.
 * @param {'docker' | 'native'} engine
 * @throws {Error} when the backends run the other way already, or Docker is wished for and cannot be had
 */
export async function demandEngine(engine) {
  const wish = wished();
  if (wish !== undefined && wish !== engine)
    throw new Error(
      `PORTICO_BACKENDS is ${wish}, but the backends were started with ${engine}: npm stop ends those`,
    );
  if (engine !== 'docker') return;
  const reason = await whyNoDocker();
  if (reason !== undefined) throw new Error(`the Docker engine, with Compose v2, does not answer: ${reason}`);
}

/** Writes down how the backends run from now on. @returns {boolean} whether that was not written down before */
export function noteEngine(p, engine) {
  const isFirst = notedEngine(p) === undefined;
  writeFileSync(noteOf(p), `${engine}\n`);
  return isFirst;
}
