import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { runProgram } from '../../processes/run-program.mjs';
import { root } from '../../state/profile.mjs';
import { fetchIndex, mirrors, resolvePackages } from './archive.mjs';
import { lockFile, readLock } from './lock-file.mjs';
import { recipes } from './recipes.mjs';

// For those who maintain Portico: writes the lock file anew from what Debian's archive and Maven Central have today; with names of
// programs behind it those alone.
// Kafka's jars are resolved by Maven (`mvn` must be there) from pom.xml.

const newest = 'sid';

/** @param {{programs: object, files: object}} known what stays */
async function lockArchitecture(mirror, arch, known) {
  const indexes = new Map();
  const indexOf = (suite) => {
    if (!indexes.has(suite)) indexes.set(suite, fetchIndex(mirror, suite, arch));
    return indexes.get(suite);
  };
  const { programs, files } = known;
  for (const [name, recipe] of Object.entries(recipes)) {
    if (only.length > 0 && !only.includes(name)) continue;
    const suite = recipe.suite ?? newest;
    const index = await indexOf(suite);
    const { version, packages } = resolvePackages(recipe, index);
    programs[name] = { version, suite, date: index.date, packages: packages.map(({ path }) => path).sort() };
    for (const { path, size, sha256 } of packages) files[path] = { size, sha256 };
  }
  const sorted = Object.fromEntries(Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { programs, files: sorted };
}

const filesBelow = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesBelow(join(folder, entry.name)) : [join(folder, entry.name)],
  );

async function lockKafka() {
  const pom = join(root, 'compose/native/programs/kafka-pom.xml');
  const folder = mkdtempSync(join(tmpdir(), 'portico-kafka-'));
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
  try {
    const options = [
      `-DoutputDirectory=${folder}`,
      '-Dmdep.useRepositoryLayout=true',
      '-DincludeScope=runtime',
    ];
    await runProgram('mvn', ['-q', '-B', '-f', pom, goal, ...options], { timeoutMs: 600_000 });
    const jars = filesBelow(folder)
      .filter((file) => file.endsWith('.jar'))
      .sort()
      .map((file) => ({
        path: relative(folder, file).split(sep).join('/'),
        size: statSync(file).size,
        sha256: createHash('sha256').update(readFileSync(file)).digest('hex'),
      }));
    const version = /<artifactId>kafka_2\.13<\/artifactId>\s*<version>([^<]+)</.exec(
      readFileSync(pom, 'utf8'),
    );
    return { version: version?.[1], jars };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const only = process.argv.slice(2);
const before = readLock();
const [mirror = ''] = await mirrors();
const architectures = {};
for (const arch of ['amd64', 'arm64']) {
  const known = only.length > 0 ? before.architectures[arch] : undefined;
  architectures[arch] = await lockArchitecture(mirror, arch, known ?? { programs: {}, files: {} });
}
// the module is chosen by hand: its licence has to be read
const { redisJson } = before;
const kafka = only.length > 0 ? before.kafka : await lockKafka();
const lock = { architectures, kafka, redisJson };
writeFileSync(lockFile, `${JSON.stringify(lock, null, 2)}\n`);
