import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Interrupted } from '../interruption.mjs';
import { runProgram } from '../run-program.mjs';

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
/** Newest first. A release that cannot be had, or whose file has gone from the mirror, is passed over for the next. */
const suites = ['sid', 'forky', 'trixie'];

/** Older ones may corrupt an HNSW index while vacuuming, or overrun a buffer while building one in parallel. */
const soundVersion = [0, 8, 4];

/** The mirror that this system itself uses for Debian's main archive. */
async function mirror() {
  const rows = await runProgram('apt-get', [
    'indextargets',
    '--format',
    '$(REPO_URI)|$(ORIGIN)|$(LABEL)',
  ]).catch(() => '');
  const lines = rows.split('\n');
  // origin and label are known once the lists have been fetched; before that the address has to do
  const row =
    lines.find((line) => line.endsWith('|Debian|Debian')) ?? lines.find((line) => /\/debian\/?\|/.test(line));
  if (row === undefined) throw new Error('apt knows no Debian archive to fetch the source of pgvector from');
  return row.split('|')[0]?.replace(/\/$/, '') ?? '';
}

/** An apt of our own: its lists and sources lie in a folder of ours, the signatures are checked as ever. */
async function privateApt(dir, uri, suite) {
  for (const part of ['lists/partial', 'cache/archives/partial', 'parts']) {
    mkdirSync(join(dir, part), { recursive: true });
  }
  writeFileSync(join(dir, 'sources.list'), `deb-src [signed-by=${keyring}] ${uri} ${suite} main\n`);
  const settings = {
    'Dir::Etc::sourcelist': join(dir, 'sources.list'),
    'Dir::Etc::sourceparts': join(dir, 'parts'),
    'Dir::State::lists': join(dir, 'lists'),
    'Dir::Cache': join(dir, 'cache'),
    'Acquire::Languages': 'none',
    'Acquire::Retries': '2',
    // The folder is private, so apt's own unprivileged user could not write into it.
    'APT::Sandbox::User': 'root',
  };
  const lines = Object.entries(settings).map(([key, value]) => `${key} "${value}";\n`);
  const conf = join(dir, 'apt.conf');
  writeFileSync(conf, lines.join(''));
  return { APT_CONFIG: conf };
}

/** Fetches the source package of one release into a folder. Returns its version. */
async function fetchFrom(suite, uri, dir) {
  mkdirSync(dir);
  const env = await privateApt(dir, uri, suite);
  await runProgram('apt-get', ['update', '-qq'], { env, timeoutMs: 120_000 });
  const args = ['source', '-qq', '--download-only', '--only-source', 'pgvector'];
  await runProgram('apt-get', args, { env, cwd: dir, timeoutMs: 120_000 });
  const description = readdirSync(dir).find((name) => name.endsWith('.dsc')) ?? '';
  return /_([^_-]+)/.exec(description)?.[1] ?? 'of an unknown version';
}

/** Fetches the newest source package that can be had. */
async function fetchSource(dir, progress) {
  const uri = await mirror();
  const failures = [];
  for (const suite of suites) {
    const folder = join(dir, suite);
    try {
      return { version: await fetchFrom(suite, uri, folder), folder };
    } catch (error) {
      if (error instanceof Interrupted) throw error;
      failures.push(`${suite}: ${error.message}`);
      progress(`pgvector of Debian ${suite} cannot be had; trying the release before it`);
    }
  }
  throw new Error(`no source package of pgvector can be had: ${failures.join('; ')}`);
}

/** Whether a version such as 0.8.0 is older than one without known faults. */
function isUnsound(version) {
  const parts = version.split('.').map(Number);
  const at = soundVersion.findIndex((number, place) => parts[place] !== number);
  return at !== -1 && (parts[at] ?? 0) < (soundVersion[at] ?? 0);
}

/**
 * Compiles pgvector into a copied Postgres, from Debian's source package.
 * @param {string} prefix the folder that holds `usr/lib/postgresql/N`
 * @param {string} major
 * @param {(line: string) => void} progress
 * @throws {Error} when the source cannot be fetched or does not compile
 */
export async function buildPgvector(prefix, major, progress) {
  if (!existsSync(keyring)) {
    throw new Error(
      `${keyring} is missing, so Debian's packages cannot be checked: install postgresql-${major}-pgvector`,
    );
  }
  const dir = mkdtempSync(join(tmpdir(), 'portico-pgvector-'));
  try {
    const { version, folder } = await fetchSource(dir, progress);
    progress(`compiling pgvector ${version}`);
    if (isUnsound(version)) {
      progress(
        `pgvector ${version} has faults in HNSW indexes that ${soundVersion.join('.')} mends: not for production`,
      );
    }
    await compile(folder, prefix, major);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function compile(folder, prefix, major) {
  const archive = readdirSync(folder).find((name) => /\.orig\.tar\./.test(name)) ?? '';
  const source = join(folder, 'source');
  mkdirSync(source);
  await runProgram('tar', ['-xf', join(folder, archive), '-C', source, '--strip-components=1']);
  const settings = [
    `PG_CONFIG=/usr/lib/postgresql/${major}/bin/pg_config`,
    // The default, -march=native, would crash on another machine that gets this folder.
    'OPTFLAGS=',
    'with_llvm=no',
  ];
  await runProgram('make', ['-C', source, '-j2', ...settings], { timeoutMs: 240_000 });
  await runProgram('make', ['-C', source, ...settings, `DESTDIR=${prefix}`, 'install']);
}
