import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from './run-program.mjs';

/** A Docker client without an engine answers at once or hangs on its socket; an engine answers in far less. */
const answerLimitMs = 3_000;

async function dockerAnswers() {
  try {
    // `docker info` alone exits with 0 in some versions although no server answered.
    const server = await runProgram('docker', ['info', '--format', '{{.ServerVersion}}'], {
      timeoutMs: answerLimitMs,
    });
    await runProgram('docker', ['compose', 'version'], { timeoutMs: answerLimitMs });
    return server.trim() !== '';
  } catch {
    return false;
  }
}

const noteOf = (p) => join(p.run, 'engine');

/** Forgets which way the backends run; for when none runs any more. */
export function forgetEngine(p) {
  rmSync(noteOf(p), { force: true });
}

/**
 * How the backends of a profile run: as its last start decided, so that a stop finds them; else by PORTICO_BACKENDS;
 * else by whether a Docker engine answers.
 * @param {import('./profile.mjs').Profile} p
 * @returns {Promise<'docker' | 'native'>}
 * @throws {Error} when neither way is open on this system
 */
export async function chooseEngine(p) {
  const noted = existsSync(noteOf(p)) ? readFileSync(noteOf(p), 'utf8').trim() : undefined;
  if (noted === 'docker' || noted === 'native') return noted;
  const wish = process.env.PORTICO_BACKENDS || undefined;
  if (wish !== undefined && wish !== 'docker' && wish !== 'native') {
    throw new Error(`PORTICO_BACKENDS must be docker or native, not '${wish}'`);
  }
  const engine = wish ?? ((await dockerAnswers()) ? 'docker' : 'native');
  if (engine === 'native' && process.platform !== 'linux') {
    throw new Error('no Docker engine answers, and without one the backends can be started on Linux only');
  }
  return engine;
}

/** Writes down how the backends run from now on. */
export function noteEngine(p, engine) {
  writeFileSync(noteOf(p), `${engine}\n`);
}
