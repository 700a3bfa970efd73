import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { nobodyUses } from '../../processes/process-table.mjs';
import { download } from './download.mjs';
import { readLock, shortDigest } from './lock-file.mjs';

/** Maven Central; PORTICO_MAVEN_MIRROR names another repository. */
const publicRepository = 'https://repo.maven.apache.org/maven2';

/** @param {import('../../state/profile.mjs').Profile} p @returns {string} the folder of Kafka's jars */
export function kafkaJarsOf(p) {
  const { version, jars } = readLock().kafka;
  return join(p.programs, `kafka-${version}-${shortDigest(jars)}`);
}

/**
 * Fetches Kafka's jars, beside their final place; the folder is moved there whole.
 * @param {import('../../state/profile.mjs').Profile} p
 * @param {(line: string) => void} progress
 * @throws {Error} with the reason
 */
export async function fetchKafkaJars(p, progress) {
  const folder = kafkaJarsOf(p);
  if (existsSync(folder)) return;
  const half = `${folder}.new`;
  mkdirSync(half, { recursive: true });
  const repository = (process.env.PORTICO_MAVEN_MIRROR || publicRepository).replace(/\/$/, '');
  const { jars, version } = readLock().kafka;
  const total = jars.reduce((sum, { size }) => sum + size, 0);
  progress(`fetching Kafka ${version} (${(total / 1e6).toFixed(0)} MB)`);
  const wanted = jars.map(({ path, size, sha256 }) => ({
    urls: [`${repository}/${path}`],
    file: join(half, basename(path)),
    size,
    sha256,
  }));
  await Promise.all(wanted.map((jar) => download(jar, () => undefined)));
  const known = new Set(wanted.map(({ file }) => basename(file)));
  for (const name of readdirSync(half)) if (!known.has(name)) rmSync(join(half, name));
  renameSync(half, folder);
  for (const name of readdirSync(p.programs)) {
    const old = join(p.programs, name);
    if (/^kafka-[\d.]+(-[0-9a-f]{8})?$/.test(name) && old !== folder && nobodyUses(old))
      rmSync(old, { recursive: true, force: true });
  }
}
