import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { lockedHere } from '../native/programs/lock-file.mjs';

// Adds to the image's SBOM what portico:dev holds beside: the packages of Debian's archive and Kafka's jars.
const file = process.argv[2] ?? 'sbom.cdx.json';
const held = ['patchelf', 'redis', 'postgres', 'java', 'rabbitmq', 'nss-wrapper'];
const { lock, programs } = lockedHere();

function debianComponent(path) {
  const [name = '', version = '', arch] = decodeURIComponent(basename(path, '.deb')).split('_');
  return {
    type: 'library',
    name,
    version,
    purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${arch}`,
  };
}

/** A path of a Maven repository is group/artifact/version/file. */
function mavenComponent(path) {
  const parts = path.split('/').slice(0, -1);
  const [name, version] = parts.splice(-2);
  const group = parts.join('.');
  return { type: 'library', group, name, version, purl: `pkg:maven/${group}/${name}@${version}` };
}

const packages = new Set(held.flatMap((name) => programs[name]?.packages ?? []));
const document = JSON.parse(readFileSync(file, 'utf8'));
document.components.push(
  ...[...packages].sort().map(debianComponent),
  ...lock.kafka.jars.map(({ path }) => mavenComponent(path)),
);
writeFileSync(file, `${JSON.stringify(document, null, 1)}\n`);
