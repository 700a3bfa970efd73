import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { basename, join } from 'node:path';
import { Interrupted } from '../../processes/interruption.mjs';
import { nobodyUses } from '../../processes/process-table.mjs';
import { writePrivateFile } from '../../state/secrets.mjs';
import { fetchIndex, mirrors, resolvePackages } from './archive.mjs';
import { download, Gone } from './download.mjs';
import { lockedHere, shortDigest } from './lock-file.mjs';
import { omittedPaths, recipeOf, recipes } from './recipes.mjs';
import { isRelocated, relocate } from './relocate.mjs';
import { createSlots } from './slots.mjs';
import { demandUnpacking, makeTree, unpack } from './unpack.mjs';

/**
 * A program that is there.
 * @typedef {{wanted: string, tree: string, version: string, instead?: string}} Present
 *   wanted: digest of what the lock file named; tree: folder below the programs; instead: the locked version, where the
 *   archive had it no longer
 */

/** 180 MB of packages and jars, 510 MB unpacked; the packages go when all is there. */
const neededMegabytes = 750;

const noteOf = (p) => join(p.programs, 'present.json');
const packagesOf = (p) => join(p.programs, 'packages');

/**
 * Held by whoever fetches or removes programs. It lies beside the folder itself: state folders may share one by a link, and the
 * packages that one unpacks are removed by another that has all it needs.
 */
export function programsLock(p) {
  mkdirSync(p.programs, { recursive: true });
  return `${realpathSync(p.programs)}.lock`;
}

/** @returns {Record<string, Present>} */
function present(p) {
  try {
    return JSON.parse(readFileSync(noteOf(p), 'utf8'));
  } catch {
    return {};
  }
}

/** @returns {boolean} whether a start has brought this program */
export const isThere = (p, name) => present(p)[name] !== undefined;

/**
 * A program's folder, which holds `usr`.
 * @param {import('../../state/profile.mjs').Profile} p
 * @param {string} name of a recipe
 * @returns {{tree: string, version: string, instead?: string}}
 * @throws {Error} when it is not there
 */
export function programOf(p, name) {
  const known = present(p)[name];
  if (!known) throw new Error(`${recipeOf(name).title} is not there`);
  return { ...known, tree: join(p.programs, known.tree) };
}

/** What was unpacked differently is another tree, too. */
const digestOf = (name, packages) =>
  shortDigest([packages.map(({ sha256 }) => sha256), omittedPaths(recipeOf(name)), 1]);

/** Counts bytes, and says so about once a second. */
function byteCounter(say) {
  let [done, told] = [0, Date.now()];
  const sizes = new Map();
  const megabytes = (bytes) => (bytes / 1e6).toFixed(0);
  return {
    /** Programs share packages; each is fetched once. */
    expect: (file, bytes) => sizes.set(file, bytes),
    count: (bytes) => {
      done += bytes;
      if (Date.now() - told < 1_000) return;
      told = Date.now();
      const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
      say(`${megabytes(done)} of ${megabytes(total)} MB fetched`);
    },
  };
}

/** A shared piece of work: begun by the first who asks. */
function once(work) {
  let result;
  return () => {
    result ??= work();
    return result;
  };
}

/** A full disk is said by its cause and its cure, not by the words of the program that met it. */
export const withWayOut = (p) => (error) => {
  if (error.code !== 'ENOSPC' && !/No space left/i.test(error.message)) throw error;
  throw new Error(`the disk is full: the programs need about ${neededMegabytes} MB below ${p.programs}`, {
    cause: error,
  });
};

/**
 * Fetches, unpacks and relocates programs; each is built beside its final place and moved there whole.
 * @param {import('../../state/profile.mjs').Profile} p
 * @param {(line: string) => void} say
 * @param {boolean} [lockedOnly] not to look for successors: before npm's packages are there, whose loss an import of
 *   OpenPGP would remember for good
 */
export function programInstaller(p, say, lockedOnly = false) {
  const unpacking = createSlots(Math.max(2, availableParallelism?.() ?? cpus().length));
  const bytes = byteCounter(say);
  const sources = once(mirrors);
  const indexes = new Map();
  const fetchCurrent = async ({ suite, date }) => {
    const { arch } = lockedHere();
    const failures = [];
    for (const mirror of await sources()) {
      try {
        const found = await fetchIndex(mirror, suite, arch);
        // an old index, signed as well as a new one, must not bring back old faults
        if (Date.parse(found.date) >= Date.parse(date)) return found;
        failures.push('its index is older than the lock file');
      } catch (error) {
        if (error instanceof Interrupted) throw error;
        failures.push(error.message);
      }
    }
    throw new Error(`the current packages of Debian's archive cannot be had: ${failures.join('; ')}`);
  };
  const indexOf = (locked) => {
    if (!indexes.has(locked.suite)) indexes.set(locked.suite, fetchCurrent(locked));
    return indexes.get(locked.suite);
  };

  /** Unpacks each package as soon as it is there. */
  async function build(name, version, packages) {
    const tree = `${name}-${version}-${digestOf(name, packages)}`;
    const final = join(p.programs, tree);
    if (existsSync(final)) return tree;
    const half = `${final}.new`;
    rmSync(half, { recursive: true, force: true });
    makeTree(half);
    const urls = await sources();
    const missing = packages.filter(({ path }) => !existsSync(join(packagesOf(p), basename(path))));
    for (const { path, size } of missing) bytes.expect(basename(path), size);
    const results = await Promise.allSettled(
      packages.map(async ({ path, size, sha256 }) => {
        const file = join(packagesOf(p), basename(path));
        const from = urls.map((url) => `${url}/${path}`);
        await download({ urls: from, file, size, sha256 }, bytes.count);
        await unpacking(() => unpack(file, half, omittedPaths(recipeOf(name))));
      }),
    );
    const failed = results.filter((result) => result.status === 'rejected').map((result) => result.reason);
    if (failed.length > 0) throw failed.find((error) => !(error instanceof Gone)) ?? failed[0];
    chmodSync(half, 0o755);
    renameSync(half, final);
    return tree;
  }

  async function obtain(name, locked, packages) {
    try {
      return { tree: await build(name, locked.version, packages), version: locked.version };
    } catch (error) {
      if (!(error instanceof Gone) || lockedOnly) throw error;
    }
    const current = resolvePackages(recipeOf(name), await indexOf(locked));
    const tree = await build(name, current.version, current.packages);
    return { tree, version: current.version, instead: locked.version };
  }

  const patchelf = once(() => install('patchelf'));

  async function install(name) {
    const { programs, files } = lockedHere();
    const locked = /** @type {import('./archive.mjs').LockedProgram} */ (programs[name]);
    const packages = locked.packages.map((path) => ({
      path,
      .../** @type {{size: number, sha256: string}} */ (files[path]),
    }));
    const wanted = digestOf(name, packages);
    const known = present(p)[name];
    const there = known?.wanted === wanted && existsSync(join(p.programs, known.tree));
    const recipe = recipeOf(name);
    // patchelf itself is always called through its loader, a library is loaded by another program
    const staysAsItIs = name === 'patchelf' || recipe.isLibrary === true;
    const runs = staysAsItIs || (there && isRelocated(join(p.programs, known.tree)));
    if (there && runs) return join(p.programs, known.tree);
    const got = there ? known : { wanted, ...(await obtain(name, locked, packages)) };
    const tree = join(p.programs, got.tree);
    if (!staysAsItIs) await relocate(tree, await patchelf(), recipe.runPath);
    writePrivateFile(noteOf(p), JSON.stringify({ ...present(p), [name]: got }, null, 2));
    if (got.instead && !there)
      say(`${recipe.title} ${got.version}, because Debian's archive no longer has ${got.instead}`);
    return tree;
  }

  return {
    p,
    say,
    /**
     * @param {string} name of a recipe
     * @returns {Promise<string>} the program's folder
     * @throws {Error} with the reason when it cannot be had
     */
    async program(name) {
      mkdirSync(p.programs, { recursive: true });
      await demandUnpacking();
      return (name === 'patchelf' ? patchelf() : install(name)).catch(withWayOut(p));
    },
    /** Removes the packages that are unpacked, and programs that nothing needs any more. */
    tidy(keep) {
      rmSync(packagesOf(p), { recursive: true, force: true });
      const used = new Set([...Object.values(present(p)).map(({ tree }) => tree), ...keep]);
      const ours = new RegExp(`^(${Object.keys(recipes).join('|')})-.+-[0-9a-f]{8}(\\.new)?$`);
      for (const name of readdirSync(p.programs))
        if (ours.test(name) && !used.has(name) && nobodyUses(join(p.programs, name)))
          rmSync(join(p.programs, name), { recursive: true, force: true });
    },
  };
}

/** @typedef {ReturnType<typeof programInstaller>} Installer */
