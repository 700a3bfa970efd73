import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isThere, programOf } from './programs/programs.mjs';

/**
 * The data of one major version of Postgres.
 * @typedef {{folder: string, major: number}} Cluster
 */

/** @param {import('../state/profile.mjs').Profile} p */
export const majorHere = (p) => Number(programOf(p, 'postgres').version.split('.')[0]);

/** @returns {string} the folder of the server's and its clients' programs */
export const binOf = (p) => join(programOf(p, 'postgres').tree, `usr/lib/postgresql/${majorHere(p)}/bin`);

/** @returns {string} the data of the present major version */
export const dataOf = (p) => join(p.data, `postgres-${majorHere(p)}`);

/** Newest first; the oldest Portico had one folder without a number. @returns {Cluster[]} */
function allClusters(p) {
  const names = existsSync(p.data) ? readdirSync(p.data) : [];
  return names
    .filter((name) => /^postgres(-\d+)?$/.test(name) && existsSync(join(p.data, name, 'PG_VERSION')))
    .map((name) => join(p.data, name))
    .map((folder) => ({
      folder,
      major: Number.parseInt(readFileSync(join(folder, 'PG_VERSION'), 'utf8'), 10),
    }))
    .sort((a, b) => b.major - a.major);
}

/** Data of other major versions, newest first. @returns {Cluster[]} */
export const olderClusters = (p) => allClusters(p).filter(({ major }) => major !== majorHere(p));

/** Where an earlier start left the programs of a major version: below a tree of ours, or the copy of the system's own. */
function programTreesOf(p, major) {
  const names = existsSync(p.programs) ? readdirSync(p.programs) : [];
  return names.filter(
    (name) =>
      name.startsWith('postgres') &&
      existsSync(join(p.programs, name, `usr/lib/postgresql/${major}/bin/postgres`)),
  );
}

/** @returns {string | undefined} the folder of programs that can read a cluster */
export function programsFor(p, { major }) {
  const [tree] = programTreesOf(p, major);
  return tree === undefined ? undefined : join(p.programs, tree, `usr/lib/postgresql/${major}/bin`);
}

/** Programs whose data were not taken over yet must not be tidied away. @returns {string[]} */
export function keptPrograms(p) {
  // where the configuration names a Postgres, none was brought; there may be data all the same
  if (isThere(p, 'postgres') && existsSync(join(dataOf(p), 'PG_VERSION'))) return [];
  return allClusters(p).flatMap(({ major }) => programTreesOf(p, major));
}

/**
 * The cluster whose data a new one must begin with.
 * @returns {Cluster | undefined} undefined: there is none
 * @throws {Error} when there is one that only a newer Postgres can read
 */
export function clusterToAdopt(p) {
  const [newest] = olderClusters(p);
  if (newest !== undefined && newest.major > majorHere(p))
    throw new Error(
      `the data in ${newest.folder} are PostgreSQL ${newest.major}'s, which PostgreSQL ${majorHere(p)} cannot read. Use the Portico that wrote them, or move that folder away`,
    );
  return newest;
}
