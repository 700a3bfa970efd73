import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { runProgram } from '../../processes/run-program.mjs';
import { root } from '../../state/profile.mjs';
import { fetchBytes } from './download.mjs';
import { leavesOut } from './recipes.mjs';

/**
 * A package as the archive's index describes it.
 * @typedef {{name: string, version: string, path: string, size: number, sha256: string}} Package
 *   path: below the archive's root
 *
 * One program as the lock file names it.
 * @typedef {{version: string, suite: string, date: string, packages: string[]}} LockedProgram
 *   date: of the suite's index that it was taken from; packages: paths, keys of `files`
 */

/** The archive that every Debian mirror copies; PORTICO_DEBIAN_MIRROR names another one. */
export const publicMirror = 'http://deb.debian.org/debian';
/** The keys that sign Debian's releases (package debian-archive-keyring): a system that is not Debian has none. */
const keysFile = join(root, 'compose/native/programs/debian-keys.asc');

const architectures = { x64: 'amd64', arm64: 'arm64' };

/** @returns {string | undefined} Debian's name of this machine's architecture, undefined where there are no programs for it */
export const architecture = () => architectures[process.arch];

/** The mirror of Debian's main archive that this system's own apt uses, which may be the nearest or the only one. */
async function systemMirror() {
  const format = '$(REPO_URI)|$(ORIGIN)|$(LABEL)';
  const rows = await runProgram('apt-get', ['indextargets', '--format', format]).catch(() => '');
  const lines = rows.split('\n').filter((line) => /^https?:/.test(line));
  // origin and label are known once the lists have been fetched; before that the address has to do
  const row =
    lines.find((line) => line.endsWith('|Debian|Debian')) ?? lines.find((line) => /\/debian\/?\|/.test(line));
  return row?.split('|')[0]?.replace(/\/$/, '');
}

/** @returns {Promise<string[]>} the archive's addresses, the first to ask first */
export async function mirrors() {
  const chosen = process.env.PORTICO_DEBIAN_MIRROR;
  if (chosen) return [chosen.replace(/\/$/, '')];
  const own = await systemMirror();
  return own === undefined || own === publicMirror ? [publicMirror] : [own, publicMirror];
}

/** @throws {Error} unless one of Debian's keys signed the text. @returns {Promise<string>} what was signed */
async function signedText(message) {
  const openpgp = await import('openpgp');
  const keys = await openpgp.readKeys({ armoredKeys: readFileSync(keysFile, 'utf8') });
  const cleartext = await openpgp.readCleartextMessage({ cleartextMessage: message }).catch(() => {
    throw new Error('the index of the archive is no signed text; a network that asks for a login sends such');
  });
  const { data, signatures } = await openpgp.verify({ message: cleartext, verificationKeys: keys });
  const verdicts = await Promise.allSettled(signatures.map((one) => one.verified));
  if (!verdicts.some((verdict) => verdict.status === 'fulfilled'))
    throw new Error('the index of the archive is not signed by a key of Debian');
  return data;
}

/** One stanza of a control file: fields by name; a folded field's further lines are left out. */
function fieldsOf(stanza) {
  const fields = {};
  for (const line of stanza.split('\n')) {
    const colon = line.indexOf(': ');
    if (colon > 0 && line[0] !== ' ') fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return fields;
}

/** The checksum that a Release file names for one of its files. */
function checksumOf(release, name) {
  const sums = release.slice(release.indexOf('\nSHA256:'));
  const row = sums.split('\n').find((line) => line.trim().split(/\s+/)[2] === name);
  const [sha256 = ''] = row?.trim().split(/\s+/) ?? [];
  if (sha256 === '') throw new Error(`the index of the archive does not name ${name}`);
  return sha256;
}

/**
 * What one suite of the archive holds now, checked against Debian's signature.
 * @param {string} mirror
 * @param {string} suite
 * @param {string} arch Debian's name
 * @returns {Promise<{date: string, byName: Map<string, Record<string, string>>, providers: Map<string, string>}>}
 * @throws {Error} when it cannot be fetched, or is not what Debian signed
 */
export async function fetchIndex(mirror, suite, arch) {
  const release = await signedText((await fetchBytes(`${mirror}/dists/${suite}/InRelease`)).toString());
  // Debian signs all of its suites with the same keys
  if (/^Codename: (.*)$/m.exec(release)?.[1] !== suite)
    throw new Error(`the index of the archive is not that of ${suite}`);
  const name = `main/binary-${arch}/Packages.gz`;
  const sha256 = checksumOf(release, name);
  // By its checksum: the file of the usual name may be exchanged between the two requests.
  const packed = await fetchBytes(
    `${mirror}/dists/${suite}/main/binary-${arch}/by-hash/SHA256/${sha256}`,
  ).catch(() => fetchBytes(`${mirror}/dists/${suite}/${name}`));
  if (createHash('sha256').update(packed).digest('hex') !== sha256)
    throw new Error('the list of packages is not the one that Debian signed');
  const byName = new Map();
  const providers = new Map();
  const text = (await promisify(gunzip)(packed)).toString();
  for (const stanza of text.split('\n\n')) {
    const fields = fieldsOf(stanza);
    if (!fields.Package) continue;
    byName.set(fields.Package, fields);
    for (const part of (fields.Provides ?? '').split(',')) {
      const provided = part.trim().split(' ')[0];
      if (provided && !providers.has(provided)) providers.set(provided, fields.Package);
    }
  }
  return { date: /^Date: (.*)$/m.exec(release)?.[1] ?? '', byName, providers };
}

/** The names that one dependency field asks for: of alternatives, the first that exists. */
function needsOf(field, { byName, providers }) {
  return field
    .split(',')
    .map((entry) => entry.split('|').map((one) => one.trim().replace(/[\s(:].*$/, '')))
    .filter(([first]) => first)
    .map((names) => ({
      names,
      chosen:
        names.find((name) => byName.has(name)) ?? names.map((name) => providers.get(name)).find(Boolean),
    }));
}

/** `5:8.0.6-3` is `8.0.6` to a person. */
const upstream = (version) =>
  version
    .replace(/^\d+:/, '')
    .replace(/[-+~][^-]*$/, '')
    .replace(/\+.*$/, '');

/**
 * All packages of a program, dependencies included.
 * @param {import('./recipes.mjs').Recipe} recipe
 * @param {Awaited<ReturnType<typeof fetchIndex>>} index
 * @returns {{version: string, packages: Package[]}}
 * @throws {Error} that names a package which the archive does not have
 */
export function resolvePackages(recipe, index) {
  const found = new Map();
  const todo = [...recipe.roots];
  for (const name of todo) {
    if (found.has(name)) continue;
    const fields = index.byName.get(name);
    if (!fields) throw new Error(`the archive has no package ${name}`);
    found.set(name, fields);
    for (const { names, chosen } of needsOf(
      `${fields.Depends ?? ''},${fields['Pre-Depends'] ?? ''}`,
      index,
    )) {
      if (names.some((one) => leavesOut(recipe, one)) || (chosen && leavesOut(recipe, chosen))) continue;
      if (!chosen) throw new Error(`the archive has no package ${names.join(' or ')}, which ${name} needs`);
      todo.push(chosen);
    }
  }
  const packages = [...found].map(([name, fields]) => ({
    name,
    version: fields.Version,
    path: fields.Filename,
    size: Number(fields.Size),
    sha256: fields.SHA256,
  }));
  return { version: upstream(packages[0]?.version ?? ''), packages };
}
