import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readProcess, workingIn, worksIn } from '../processes/process-table.mjs';
import { signalAll, waitGone } from '../processes/processes.mjs';
import { runProgram } from '../processes/run-program.mjs';
import { root } from '../state/profile.mjs';
import { writePrivateFile } from '../state/secrets.mjs';
import { setupEnvironment, WrongPassword } from './backend.mjs';
import { demandFolderName } from './folder-names.mjs';
import { commandWithName, explainNameless, fetchNames } from './nameless-user.mjs';
import {
  binOf,
  clusterToAdopt,
  dataOf,
  keptPrograms,
  majorHere,
  olderClusters,
} from './postgres-clusters.mjs';
import { adoptCluster } from './postgres-upgrade.mjs';
import { programOf } from './programs/programs.mjs';
import { giveData, giveTo } from './unprivileged.mjs';

/** initdb takes a second or two; data that were not closed are recovered first. */
const setupLimitMs = 600_000;
/** Children of a killed Postgres see within milliseconds that it is gone, on a busy machine within seconds. */
const orphanGraceMs = 3_000;

/** Runs one of Postgres' programs to its end, as the user that the server runs as. */
async function runOnce(context, program, options, input = '') {
  const { p } = context;
  const { tree } = programOf(p, 'postgres');
  const places = { tree, bin: binOf(p), share: join(tree, `usr/share/postgresql/${majorHere(p)}`) };
  const { file, args, env } = commandWithName(context, places, program, options);
  await runProgram(file, args, {
    cwd: p.run,
    env: { ...setupEnvironment(p, 'postgres'), ...env },
    input,
    timeoutMs: setupLimitMs,
  }).catch((error) => {
    throw explainNameless(error);
  });
}

/** The digest of the administrator's password that the data hold, beside them. */
const passwordMarkOf = (dataDir) => `${dataDir}.admin`;
const digestOf = (text) => createHash('sha256').update(text).digest('hex');

function notePassword(dataDir, password) {
  writePrivateFile(passwordMarkOf(dataDir), digestOf(password));
}

/** Data from earlier take the administrator's password of today, where it is another one. */
async function takePassword(context, dataDir) {
  const { PORTICO_POSTGRES_ADMIN_PASSWORD: password } = context.secrets;
  const mark = passwordMarkOf(dataDir);
  if (existsSync(mark) && readFileSync(mark, 'utf8') === digestOf(password)) return;
  const statement = `alter role postgres password '${password.replaceAll("'", "''")}';\n`;
  await runOnce(context, 'postgres', ['--single', '-D', dataDir, 'postgres'], statement);
  notePassword(dataDir, password);
}

/** Makes a new cluster in an empty folder. */
export async function initialize({ p, secrets, runner }, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  const passwordFile = join(p.run, 'postgres-first-password');
  writePrivateFile(passwordFile, secrets.PORTICO_POSTGRES_ADMIN_PASSWORD);
  giveTo(runner, folder);
  giveTo(runner, passwordFile);
  try {
    const options = [
      ...['-D', folder, '-U', 'postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`],
      ...['--encoding=UTF8', '--locale=C.UTF-8', '--no-sync'],
    ];
    await runOnce({ p, secrets, runner }, 'initdb', options);
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/**
 * The cluster of this major version. A new one is made beside its final place, with the data of an older one if there
 * is one, and moved there whole: a start that was cut off leaves no half one.
 */
async function ensureCluster(context, progress) {
  const { p } = context;
  const folder = dataOf(p);
  if (existsSync(join(folder, 'PG_VERSION'))) return folder;
  const older = clusterToAdopt(p);
  const half = `${folder}.new`;
  await initialize(context, half);
  if (older !== undefined) await adoptCluster(context, older, half, progress);
  renameSync(half, folder);
  notePassword(folder, context.secrets.PORTICO_POSTGRES_ADMIN_PASSWORD);
  return folder;
}

/**
 * Postgres refuses to start while the process in its lock file can be signalled. A zombie can, and where process 1
 * does not collect orphans (many containers) a killed Postgres stays one for long. So can any other program of this
 * user that has its number since; a Postgres works in its data folder.
 */
async function dropStaleLock(dataDir) {
  const lock = join(dataDir, 'postmaster.pid');
  if (!existsSync(lock)) return;
  const pid = Number.parseInt(readFileSync(lock, 'utf8'), 10);
  if (readProcess(pid) !== undefined && worksIn(pid, dataDir)) return;
  await endOrphans(dataDir);
  rmSync(lock);
}

/**
 * While children of a killed Postgres hold its shared memory, no other starts on its data. One that was forked as it was killed
 * belongs to no process that is known, and the title that Postgres gives it overwrites the tag in its environment.
 */
async function endOrphans(dataDir) {
  const orphans = workingIn(dataDir);
  if (await waitGone(orphans, orphanGraceMs)) return;
  signalAll(orphans, 'SIGKILL');
  await waitGone(orphans, orphanGraceMs);
}

/** Settings of ours go into a file that Postgres reads instead of the generated one. */
function writeConfiguration(p, runner, dataDir) {
  const own = [
    "listen_addresses = '127.0.0.1'",
    `port = ${p.ports.postgres}`,
    "unix_socket_directories = ''",
  ];
  const file = join(dataDir, 'postgresql.conf');
  writeFileSync(file, `${readFileSync(join(root, 'config/postgresql.conf'), 'utf8')}${own.join('\n')}\n`);
  giveTo(runner, file);
}

/** Runs SQL over TCP; the password goes by the environment, the statements by standard input. */
async function sql({ p }, user, password, database, text) {
  const target = ['-h', '127.0.0.1', '-p', String(p.ports.postgres), '-U', user, '-d', database];
  const reply = runProgram(join(binOf(p), 'psql'), ['-X', '-qtA', '-v', 'ON_ERROR_STOP=1', ...target], {
    env: { PGPASSWORD: password, PGCONNECT_TIMEOUT: '2' },
    input: text,
    cwd: '/',
    timeoutMs: 10_000,
  });
  return reply.catch((error) => {
    throw /password authentication failed/.test(error.message) ? new WrongPassword() : error;
  });
}

/** The role, its database and the extension; each line may be run again. */
function setupStatements(password) {
  return {
    server: `
      set log_min_error_statement = panic;
      select 'create role portico login' where not exists (select from pg_roles where rolname = 'portico') \\gexec
      alter role portico password '${password}';
      select 'create database portico owner portico' where not exists (select from pg_database where datname = 'portico') \\gexec
    `,
    database:
      'set client_min_messages = warning; create extension if not exists vector; alter extension vector update;',
  };
}

/** @type {import('./backend.mjs').Backend} */
export const postgres = {
  name: 'postgres',
  ports: ['postgres'],
  graceMs: 15_000,
  // Postgres' fast shutdown: SIGTERM would wait for every client to go by itself.
  stopSignal: 'SIGINT',

  async install(installer) {
    demandFolderName('postgres', installer.p.dir);
    await Promise.all([installer.program('postgres'), fetchNames(installer)]);
  },
  keeps: keptPrograms,

  async processes(context, progress) {
    const { p, runner } = context;
    const dataDir = await ensureCluster(context, progress);
    giveData(runner, dataDir);
    writeConfiguration(p, runner, dataDir);
    await dropStaleLock(dataDir);
    await takePassword(context, dataDir);
    return [{ name: 'postgres', file: join(binOf(p), 'postgres'), args: ['-D', dataDir], cwd: '/' }];
  },

  async prepare(context) {
    const { PORTICO_POSTGRES_ADMIN_PASSWORD: admin, PORTICO_POSTGRES_PASSWORD: password } = context.secrets;
    const statements = setupStatements(password);
    await sql(context, 'postgres', admin, 'postgres', statements.server);
    await sql(context, 'postgres', admin, 'portico', statements.database);
  },

  async ready(context) {
    const password = context.secrets.PORTICO_POSTGRES_PASSWORD;
    const answer = await sql(context, 'portico', password, 'portico', "select '[1,2]'::vector <-> '[1,2]';");
    if (answer.trim() !== '0') throw new Error('Postgres has no pgvector');
  },

  notes({ p }) {
    const { version, instead } = programOf(p, 'postgres');
    return [
      ...(instead ? [`PostgreSQL ${version} in place of ${instead}, which Debian no longer has`] : []),
      ...olderClusters(p).map(
        ({ folder, major }) =>
          `${folder} holds what PostgreSQL ${major} had before its data were copied to ${majorHere(p)}; delete it when you like`,
      ),
    ];
  },

  urls: ({ p, secrets }) => ({
    PORTICO_DATABASE_URL: `postgres://portico:${secrets.PORTICO_POSTGRES_PASSWORD}@127.0.0.1:${p.ports.postgres}/portico`,
  }),
};
