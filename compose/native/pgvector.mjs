import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Interrupted } from '../interruption.mjs';
import { runProgram } from '../run-program.mjs';
import { withNewestRelease } from './debian-archive.mjs';
import { compareVersions } from './versions.mjs';

/** Older ones may corrupt an HNSW index while vacuuming, or overrun a buffer while building one in parallel. */
const soundVersion = '0.8.4';

/** Fetches the source package of one release. Returns its version. */
async function fetchSource({ folder, run }) {
  await run('apt-get', ['source', '-qq', '--download-only', '--only-source', 'pgvector']);
  const description = readdirSync(folder).find((name) => name.endsWith('.dsc')) ?? '';
  return /_([^_-]+)/.exec(description)?.[1] ?? '0';
}

/**
 * Compiles pgvector into a copied Postgres, from Debian's source package.
 * @param {string} prefix the folder that holds `usr/lib/postgresql/N`
 * @param {string} major
 * @param {(line: string) => void} progress
 * @throws {Error} when the source cannot be fetched or does not compile
 */
export async function buildPgvector(prefix, major, progress) {
  try {
    await withNewestRelease('pgvector', 'deb-src', progress, async (release) => {
      const version = await fetchSource(release);
      progress(`compiling pgvector ${version}`);
      if (compareVersions(version, soundVersion) < 0) {
        progress(
          `pgvector ${version} has faults in HNSW indexes that ${soundVersion} mends: not for production`,
        );
      }
      await compile(release.folder, prefix, major);
    });
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    throw new Error(`${error.message}. A package postgresql-${major}-pgvector would do as well`, {
      cause: error,
    });
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
