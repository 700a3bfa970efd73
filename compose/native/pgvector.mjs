import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from '../run-program.mjs';

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
/** Newest first. A release whose file has gone from the mirror is passed over for the next. */
const suites = ['sid', 'forky', 'trixie'];

/** Older ones may corrupt an HNSW index while vacuuming, or overrun a buffer while building one in parallel. */
export const soundVersion = [0, 8, 4];

/** The mirror that this system itself uses for Debian's main archive. */
async function mirror() {
  const rows = await runProgram('apt-get', [
    'indextargets',
    '--format',
    '$(REPO_URI)|$(ORIGIN)|$(LABEL)',
  ]).catch(() => '');
  const row = rows.split('\n').find((line) => line.endsWith('|Debian|Debian'));
  return row?.split('|')[0]?.replace(/\/$/, '') ?? 'http://deb.debian.org/debian';
}

/** An apt of our own: its lists and sources lie in a folder of ours, the signatures are checked as ever. */
async function privateApt(dir) {
  const uri = await mirror();
  for (const part of ['lists/partial', 'cache/archives/partial', 'parts'])
    mkdirSync(join(dir, part), { recursive: true });
  const lines = suites.map((suite) => `deb-src [signed-by=${keyring}] ${uri} ${suite} main`);
  writeFileSync(join(dir, 'sources.list'), `${lines.join('\n')}\n`);
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
  const conf = join(dir, 'apt.conf');
  writeFileSync(
    conf,
    Object.entries(settings)
      .map(([key, value]) => `${key} "${value}";\n`)
      .join(''),
  );
  return { APT_CONFIG: conf };
}

/** The versions on offer, newest first. */
async function versionsOnOffer(env) {
  const table = await runProgram('apt-cache', ['madison', 'pgvector'], { env });
  const versions = table.split('\n').map((line) => line.split('|')[1]?.trim());
  return [...new Set(versions.filter((version) => version))];
}

/** Fetches the newest source package that can be had. */
async function fetchSource(dir, progress) {
  const env = await privateApt(dir);
  await runProgram('apt-get', ['update', '-qq'], { env, timeoutMs: 120_000 });
  const versions = await versionsOnOffer(env);
  for (const version of versions) {
    try {
      const args = ['source', '-qq', '--download-only', '--only-source', `pgvector=${version}`];
      await runProgram('apt-get', args, { env, cwd: dir, timeoutMs: 120_000 });
      return version;
    } catch {
      progress(`Debian's mirror does not have pgvector ${version}; trying an older one`);
    }
  }
  throw new Error(`no source package of pgvector can be had from ${suites.join(', ')}`);
}

/**
 * Compiles pgvector into a copied Postgres, from Debian's source package.
 * @param {string} prefix the folder that holds `usr/lib/postgresql/N`
 * @param {string} major
 * @param {(line: string) => void} progress
 * @returns {Promise<string>} the package's version
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
    const version = await fetchSource(dir, progress);
    progress(`compiling pgvector ${version}`);
    const archive = readdirSync(dir).find((name) => /\.orig\.tar\./.test(name));
    const source = join(dir, 'source');
    mkdirSync(source);
    await runProgram('tar', ['-xf', join(dir, archive), '-C', source, '--strip-components=1']);
    const settings = [
      `PG_CONFIG=/usr/lib/postgresql/${major}/bin/pg_config`,
      // The default, -march=native, would crash on another machine that gets this folder.
      'OPTFLAGS=',
      'with_llvm=no',
    ];
    await runProgram('make', ['-C', source, '-j2', ...settings], { timeoutMs: 240_000 });
    await runProgram('make', ['-C', source, ...settings, `DESTDIR=${prefix}`, 'install']);
    return version;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
