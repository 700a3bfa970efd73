import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Interrupted } from '../interruption.mjs';
import { runProgram } from '../run-program.mjs';
import { withNewestRelease } from './debian-archive.mjs';
import { compareVersions } from './versions.mjs';

/** @typedef {{file: string, version: string}} RedisProgram version: such as 8.0.6 */

const folderPattern = /^redis-(\d+(?:\.\d+)*)$/;
/** After a fetch that failed: a start without network must not try each time. */
const retryMs = 60 * 60_000;

const failureNote = (p) => join(p.programs, 'redis-not-fetched');

/** @returns {RedisProgram | undefined} the newest that was fetched */
export function fetchedRedis(p) {
  const names = existsSync(p.programs) ? readdirSync(p.programs) : [];
  const versions = names.flatMap((name) => folderPattern.exec(name)?.[1] ?? []).sort(compareVersions);
  const version = versions.at(-1);
  return version === undefined
    ? undefined
    : { file: join(p.programs, `redis-${version}`, 'redis-server'), version };
}

/** @returns {Promise<string | undefined>} what a redis-server says of itself, undefined when it does not run */
async function versionOf(file, env = {}) {
  const text = await runProgram(file, ['--version'], { env, timeoutMs: 10_000 }).catch(() => '');
  return /\bv=(\d+(?:\.\d+)*)/.exec(text)?.[1];
}

/** @returns {Promise<RedisProgram | undefined>} Debian's own of this system, or whatever lies first on PATH */
export async function systemRedis() {
  const file = (await runProgram('/bin/sh', ['-c', 'command -v redis-server']).catch(() => '')).trim();
  const version = file === '' ? undefined : await versionOf(file);
  return version === undefined ? undefined : { file, version };
}

/** @returns {Promise<RedisProgram | undefined>} the newer one of what was fetched and what the system has */
export async function newestRedis(p) {
  const [fetched, system] = [fetchedRedis(p), await systemRedis()];
  if (!fetched || !system) return fetched ?? system;
  return compareVersions(fetched.version, system.version) < 0 ? system : fetched;
}

/**
 * What the tests start servers of their own with, as variables; a program that cannot be had is left out.
 * @param {import('../profile.mjs').Profile} p
 * @returns {Promise<Record<string, string>>}
 */
export async function redisTestVariables(p) {
  const [newest, system] = [await newestRedis(p), await systemRedis()];
  return {
    ...(newest && { PORTICO_TEST_REDIS_NEWEST: newest.file }),
    ...(system && { PORTICO_TEST_REDIS_SYSTEM: system.file }),
  };
}

/** The server's packages and the libraries they need, as a set of names that apt can download. */
async function packagesOf({ run }) {
  const kinds = 'recommends suggests conflicts breaks replaces enhances pre-depends'.split(' ');
  const options = ['--recurse', ...kinds.map((kind) => `--no-${kind}`)];
  const text = await run('apt-cache', ['depends', ...options, 'redis-server']);
  const needs = new Map();
  let of = '';
  for (const line of text.split('\n')) {
    if (/^[a-z]/.test(line)) of = line.trim();
    const need = /^ [ |]Depends: ([a-z][^:\s]*)/.exec(line)?.[1];
    if (need) needs.set(of, [...(needs.get(of) ?? []), need]);
  }
  // the rest makes users, writes configuration or converts character sets
  const wanted = new Set(['redis-server', 'redis-tools']);
  for (const name of wanted)
    for (const need of needs.get(name) ?? []) if (/^(lib(?!c-gconv)|zlib)/.test(need)) wanted.add(need);
  return [...wanted];
}

/**
 * The program's own loader takes its own libraries, so it runs beside an older system. By a link of its name it is
 * called `redis-server` in the process table.
 */
function writeStarter(home) {
  const libraries = readdirSync(join(home, 'usr/lib'))
    .map((name) => join('usr/lib', name))
    .find((folder) => existsSync(join(home, folder, 'libc.so.6')));
  const loader =
    libraries && readdirSync(join(home, libraries)).find((name) => /^ld-linux.*\.so\.\d+$/.test(name));
  if (!loader) throw new Error('its packages have no loader of programs where one is expected');
  mkdirSync(join(home, 'run-as'));
  symlinkSync(join('..', libraries, loader), join(home, 'run-as/redis-server'));
  const script = `#!/bin/sh
home=\${0%/*}
exec "$home/run-as/redis-server" --library-path "$home/${libraries}" --argv0 redis-server "$home/usr/bin/redis-server" "$@"
`;
  writeFileSync(join(home, 'redis-server'), script);
  chmodSync(join(home, 'redis-server'), 0o755);
}

/** Unpacks one release's Redis into a folder. Returns its version. */
async function unpackFrom({ folder, run }, home) {
  rmSync(home, { recursive: true, force: true });
  await run('apt-get', ['download', '-qq', ...(await packagesOf({ run }))]);
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.deb')))
    await runProgram('dpkg', ['-x', join(folder, file), home]);
  for (const unused of ['etc', 'usr/share/locale', 'usr/share/man', 'var'])
    rmSync(join(home, unused), { recursive: true, force: true });
  writeStarter(home);
  // every symbol is looked up at once: one that is missing would end it at the first command that needs it
  const version = await versionOf(join(home, 'redis-server'), { LD_BIND_NOW: '1' });
  if (!version) throw new Error('its program does not run here');
  return version;
}

/**
 * Fetches the newest Redis of Debian's releases, unless that was in vain within the last hour.
 * @param {import('../profile.mjs').Profile} p
 * @param {(line: string) => void} progress
 * @throws {Error} with the reason; nothing is left behind then but a note of it
 */
export async function fetchRedis(p, progress) {
  const note = failureNote(p);
  if (existsSync(note) && Date.now() - statSync(note).mtimeMs < retryMs)
    throw new Error(`${readFileSync(note, 'utf8')} (tried within the last hour)`);
  const half = join(p.programs, 'redis.new');
  try {
    await withNewestRelease('Redis', 'deb', progress, async (release) => {
      const version = await unpackFrom(release, half);
      renameSync(half, join(p.programs, `redis-${version}`));
      progress(`Redis ${version} of Debian ${release.suite} is there`);
    });
    rmSync(note, { force: true });
  } catch (error) {
    rmSync(half, { recursive: true, force: true });
    if (!(error instanceof Interrupted)) writeFileSync(note, error.message);
    throw error;
  }
}
