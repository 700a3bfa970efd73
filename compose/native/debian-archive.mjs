import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Interrupted } from '../interruption.mjs';
import { runProgram } from '../run-program.mjs';

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
/** Newest first. A release that cannot be had, or whose file has gone from the mirror, is passed over for the next. */
const suites = ['sid', 'forky', 'trixie'];

/** A mirror that took so long to say nothing will not answer for another release either. */
const silenceMs = 30_000;

/**
 * One Debian release, seen by an apt of our own: its lists, cache and status lie in a folder of ours and the system's
 * stay as they are; the signatures are checked as ever.
 * @typedef {object} Release
 * @property {string} suite
 * @property {string} folder for what is fetched; gone when the work is done
 * @property {(program: 'apt-get' | 'apt-cache', args: string[]) => Promise<string>} run in that folder
 */

/** The mirror that this system itself uses for Debian's main archive. */
async function mirror(what) {
  if (!existsSync(keyring)) throw new Error(`${keyring} is missing, so Debian's packages cannot be checked`);
  const rows = await runProgram('apt-get', [
    'indextargets',
    '--format',
    '$(REPO_URI)|$(ORIGIN)|$(LABEL)',
  ]).catch(() => '');
  const lines = rows.split('\n');
  // origin and label are known once the lists have been fetched; before that the address has to do
  const row =
    lines.find((line) => line.endsWith('|Debian|Debian')) ?? lines.find((line) => /\/debian\/?\|/.test(line));
  if (row === undefined) throw new Error(`apt knows no Debian archive to fetch ${what} from`);
  return row.split('|')[0]?.replace(/\/$/, '') ?? '';
}

/** Writes the configuration of a private apt. Returns the variables by which apt finds it. */
function privateApt(dir, source) {
  for (const part of ['lists/partial', 'cache/archives/partial', 'parts']) {
    mkdirSync(join(dir, part), { recursive: true });
  }
  writeFileSync(join(dir, 'sources.list'), `${source}\n`);
  writeFileSync(join(dir, 'status'), '');
  const settings = {
    'Dir::Etc::sourcelist': join(dir, 'sources.list'),
    'Dir::Etc::sourceparts': join(dir, 'parts'),
    'Dir::Etc::preferences': join(dir, 'no-preferences'),
    'Dir::Etc::preferencesparts': join(dir, 'parts'),
    'Dir::State::lists': join(dir, 'lists'),
    // what this system has installed must not count
    'Dir::State::status': join(dir, 'status'),
    'Dir::Cache': join(dir, 'cache'),
    'Acquire::Languages': 'none',
    // a list that could not be fetched is a failure, not a warning
    'APT::Update::Error-Mode': 'any',
    // Measured on a mirror that accepts and says nothing: 40 s until apt gives up, instead of minutes.
    'Acquire::Retries': '1',
    'Acquire::http::Timeout': '10',
    'Acquire::https::Timeout': '10',
    // The folder is private, so apt's own unprivileged user could not write into it.
    'APT::Sandbox::User': 'root',
  };
  const lines = Object.entries(settings).map(([key, value]) => `${key} "${value}";\n`);
  const conf = join(dir, 'apt.conf');
  writeFileSync(conf, lines.join(''));
  return { APT_CONFIG: conf };
}

/** Fetches the lists of one release. */
async function openRelease(suite, uri, kind, dir) {
  const folder = join(dir, suite);
  mkdirSync(folder);
  const target = kind === 'deb' ? 'Packages' : 'Sources';
  const source = `${kind} [signed-by=${keyring} target=${target}] ${uri} ${suite} main`;
  const env = privateApt(join(dir, `${suite}-apt`), source);
  const run = (program, args) => runProgram(program, args, { env, cwd: folder, timeoutMs: 120_000 });
  await run('apt-get', ['update', '-qq']);
  return { suite, folder, run };
}

/** apt's first error, which says more than the last lines of its output. */
const reasonOf = (error) => /^E: (.{1,200})/m.exec(error.output ?? '')?.[1] ?? error.message;

/**
 * Does some work with the newest Debian release that it succeeds with.
 * @template T
 * @param {string} what is wanted, for messages
 * @param {'deb' | 'deb-src'} kind as a program, or as its source
 * @param {(line: string) => void} progress
 * @param {(release: Release) => Promise<T>} work what it throws makes the release before it be tried
 * @returns {Promise<T>}
 * @throws {Error} with the reason of each release
 */
export async function withNewestRelease(what, kind, progress, work) {
  const uri = await mirror(what);
  const dir = mkdtempSync(join(tmpdir(), 'portico-debian-'));
  const failures = [];
  try {
    for (const suite of suites) {
      const begin = Date.now();
      let release;
      try {
        release = await openRelease(suite, uri, kind, dir);
        return await work(release);
      } catch (error) {
        if (error instanceof Interrupted) throw error;
        failures.push(`${suite}: ${reasonOf(error)}`);
        progress(`${what} of Debian ${suite} cannot be had`);
        if (release === undefined && Date.now() - begin > silenceMs) break;
      }
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  throw new Error(`${what} cannot be had from any of Debian's releases: ${failures.join('; ')}`);
}
