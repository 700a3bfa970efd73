import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { readProcess } from '../process-table.mjs';
import { root } from '../profile.mjs';
import { runProgram } from '../run-program.mjs';
import { writePrivateFile } from '../secrets.mjs';
import { buildPgvector } from './pgvector.mjs';
import { commandAs, giveTo, runnerFor } from './unprivileged.mjs';

const systemHome = '/usr/lib/postgresql';

/** The newest major version of the system's Postgres. */
export function systemMajor() {
  if (!existsSync(systemHome)) return undefined;
  const majors = readdirSync(systemHome).filter((name) => existsSync(join(systemHome, name, 'bin/postgres')));
  return majors.sort((a, b) => Number(b) - Number(a))[0];
}

/** Our copy of the system's Postgres, which pgvector is added to; the system's own is left as it is. */
function copyOf(p) {
  const prefix = join(p.programs, 'postgres');
  const home = join(prefix, 'usr/lib/postgresql');
  const major = existsSync(home) ? readdirSync(home)[0] : undefined;
  return { prefix, major, bin: join(home, major ?? '', 'bin') };
}

/** Makes a new cluster beside the final place and moves it there whole, so a start that was cut off leaves no half one. */
async function makeCluster(p, secrets, runner, dataDir) {
  const half = `${dataDir}.new`;
  rmSync(half, { recursive: true, force: true });
  mkdirSync(half, { mode: 0o700 });
  const passwordFile = join(p.run, 'postgres-first-password');
  writePrivateFile(passwordFile, secrets.PORTICO_POSTGRES_ADMIN_PASSWORD);
  giveTo(runner, half);
  giveTo(runner, passwordFile);
  try {
    const options = [
      ...['-D', half, '-U', 'postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`],
      ...['--encoding=UTF8', '--locale=C.UTF-8', '--no-sync'],
    ];
    const { file, args } = commandAs(runner, join(copyOf(p).bin, 'initdb'), options);
    await runProgram(file, args, { cwd: p.run, timeoutMs: 120_000 });
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(half, dataDir);
}

/**
 * Postgres refuses to start while the process in its lock file can be signalled. A zombie can, and where process 1
 * does not collect orphans (many containers) a killed Postgres stays one for long.
 */
function dropStaleLock(dataDir) {
  const lock = join(dataDir, 'postmaster.pid');
  if (!existsSync(lock)) return;
  const pid = Number.parseInt(readFileSync(lock, 'utf8'), 10);
  if (readProcess(pid) === undefined) rmSync(lock);
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
  return runProgram(join(copyOf(p).bin, 'psql'), ['-X', '-qtA', '-v', 'ON_ERROR_STOP=1', ...target], {
    env: { PGPASSWORD: password, PGCONNECT_TIMEOUT: '2' },
    input: text,
    cwd: '/',
    timeoutMs: 10_000,
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
  programs: {},
  // `@` stands for the major version.
  installPrograms: {
    [join(systemHome, '@/bin/postgres')]: 'postgresql-@',
    [join(systemHome, '@/bin/pg_config')]: 'postgresql-server-dev-@',
    gcc: 'gcc',
    make: 'make',
  },
  ports: ['postgres'],
  graceMs: 15_000,
  // Postgres' fast shutdown: SIGTERM would wait for every client to go by itself.
  stopSignal: 'SIGINT',

  installed: (p) => existsSync(copyOf(p).prefix),

  async install(p, progress) {
    const major = systemMajor();
    if (!major) throw new Error(`Postgres is not where Debian puts it (${systemHome})`);
    const { prefix } = copyOf(p);
    const half = `${prefix}.new`;
    rmSync(half, { recursive: true, force: true });
    for (const part of [`usr/lib/postgresql/${major}`, `usr/share/postgresql/${major}`]) {
      cpSync(`/${part}`, join(half, part), { recursive: true, verbatimSymlinks: true });
    }
    const control = join(half, `usr/share/postgresql/${major}/extension/vector.control`);
    if (!existsSync(control)) await buildPgvector(half, major, progress);
    renameSync(half, prefix);
  },

  async processes({ p, secrets }) {
    const dataDir = join(p.data, 'postgres');
    const runner = await runnerFor(p.run);
    if (!existsSync(join(dataDir, 'PG_VERSION'))) await makeCluster(p, secrets, runner, dataDir);
    writeConfiguration(p, runner, dataDir);
    dropStaleLock(dataDir);
    const command = commandAs(runner, join(copyOf(p).bin, 'postgres'), ['-D', dataDir]);
    return [{ name: 'postgres', ...command, cwd: '/' }];
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

  urls: ({ p, secrets }) => ({
    PORTICO_DATABASE_URL: `postgres://portico:${secrets.PORTICO_POSTGRES_PASSWORD}@127.0.0.1:${p.ports.postgres}/portico`,
  }),
};
