import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Interrupted, interruption } from '../processes/interruption.mjs';
import { freePort } from '../processes/ports.mjs';
import { runProgram } from '../processes/run-program.mjs';
import { setupEnvironment } from './backend.mjs';
import { binOf, majorHere, programsFor } from './postgres-clusters.mjs';
import { commandAs, giveData } from './unprivileged.mjs';

const startLimitMs = 60_000;

/** What a copy says although all is well: the superuser is there already. */
const expected = /^(psql:.*)?ERROR: {2}role "postgres" already exists$/;

/** A server for the time of the copy, on a port of its own. */
async function serve({ p, runner }, bin, folder) {
  const port = await freePort();
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    // old settings may be unknown or ask for more than there is
    config_file: join(folder, 'postgresql.conf'),
    fsync: 'on',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const { file, args } = commandAs(runner, join(bin, 'postgres'), ['-D', folder, ...options]);
  const child = spawn(file, args, {
    cwd: '/',
    env: { ...process.env, ...setupEnvironment(p, 'postgres') },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  let words = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    words = (words + text).slice(-800);
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  child.once('error', (error) => {
    words = error.message;
  });
  return {
    port,
    words: () => words.trim().split('\n').slice(-3).join(' | '),
    alive: () => child.exitCode === null && child.signalCode === null && child.pid !== undefined,
    stop: async () => {
      child.kill('SIGINT');
      await ended;
    },
  };
}

const target = (server, user) => ['-h', '127.0.0.1', '-p', String(server.port), '-U', user];

async function waitReady(bin, server, env) {
  const deadline = Date.now() + startLimitMs;
  for (;;) {
    if (!server.alive()) throw new Error(`it ended at once: ${server.words()}`);
    try {
      await runProgram(
        join(bin, 'psql'),
        ['-X', '-qtA', ...target(server, 'postgres'), '-d', 'postgres', '-c', 'select 1'],
        { env },
      );
      return;
    } catch (error) {
      if (error instanceof Interrupted) throw error;
      if (/password authentication failed/.test(error.message))
        throw new Error('it refuses PORTICO_POSTGRES_ADMIN_PASSWORD of secrets.env');
      if (Date.now() > deadline) throw new Error(`it does not answer: ${error.message}`);
    }
    await sleep(200);
  }
}

function ended(child, name, isFine) {
  let words = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    words = (words + text).slice(-20_000);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      const wrong = words
        .split('\n')
        .filter((line) => /\b(ERROR|FATAL|PANIC|error):/.test(line) && !isFine(line));
      if (code === 0 && wrong.length === 0) return resolve(undefined);
      reject(new Error(`${name}: ${wrong[0] ?? words.trim().split('\n').at(-1) ?? `code ${code}`}`));
    });
  });
}

/** Everything from one server into another. */
async function copy(bin, from, to, env) {
  const options = { env: { ...process.env, ...env }, detached: true };
  const dump = spawn(
    join(bin, 'pg_dumpall'),
    [...target(from, 'postgres'), '--quote-all-identifiers'],
    options,
  );
  const load = spawn(join(bin, 'psql'), ['-X', '-q', ...target(to, 'postgres'), '-d', 'postgres'], options);
  const stop = () => [dump, load].map((child) => child.kill('SIGKILL'));
  interruption.addEventListener('abort', stop, { once: true });
  load.stdout.resume();
  try {
    await Promise.all([
      ended(dump, 'dump', () => false),
      ended(load, 'load', (line) => expected.test(line)),
      pipeline(dump.stdout, load.stdin),
    ]);
  } catch (error) {
    throw interruption.aborted ? new Interrupted() : error;
  } finally {
    interruption.removeEventListener('abort', stop);
  }
}

/**
 * Copies all data of an older cluster into a fresh one. The older folder stays as it is.
 * @param {import('./backend.mjs').Running} context
 * @param {import('./postgres-clusters.mjs').Cluster} older
 * @param {string} fresh folder of a new cluster
 * @param {(line: string) => void} progress
 * @throws {Error} with the reason and the way out; the fresh folder is gone then
 */
export async function adoptCluster(context, older, fresh, progress) {
  const { p, secrets, runner } = context;
  const bin = binOf(p);
  const oldBin = programsFor(p, older);
  const begin = Date.now();
  const servers = [];
  try {
    if (oldBin === undefined)
      throw new Error(`the programs of PostgreSQL ${older.major} are not there any more`);
    progress(`copying the data of PostgreSQL ${older.major} to ${majorHere(p)}; the old folder stays`);
    giveData(runner, older.folder);
    rmSync(join(older.folder, 'postmaster.pid'), { force: true });
    const env = { PGPASSWORD: secrets.PORTICO_POSTGRES_ADMIN_PASSWORD, PGCONNECT_TIMEOUT: '5' };
    for (const [programs, folder] of [
      [oldBin, older.folder],
      [bin, fresh],
    ]) {
      const server = await serve(context, programs, folder);
      servers.push(server);
      await waitReady(bin, server, env);
    }
    await copy(bin, servers[0], servers[1], env);
    progress(`copied in ${((Date.now() - begin) / 1000).toFixed(1)} s`);
  } catch (error) {
    for (const server of servers.splice(0)) await server.stop();
    rmSync(fresh, { recursive: true, force: true });
    if (error instanceof Interrupted) throw error;
    throw new Error(
      `the data in ${older.folder} are PostgreSQL ${older.major}'s and could not be copied to ${majorHere(p)} (${error.message}). They are untouched. Dump them with an installed PostgreSQL ${older.major} and load them by hand, or move that folder away to begin empty`,
      { cause: error },
    );
  } finally {
    for (const server of servers) await server.stop();
  }
}
