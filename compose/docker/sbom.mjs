import { execFileSync } from 'node:child_process';

/** What the image holds beside npm's packages: Node itself, and the libraries of Debian that it is linked to. */
const libraries = ['libc6', 'libstdc++6', 'libgcc-s1'];

function run(file, args) {
  return execFileSync(file, args, { encoding: 'utf8', maxBuffer: 1 << 26 });
}

function debianComponent(name) {
  const [, version = ''] = run('dpkg-query', ['--show', name]).trim().split('\t');
  return { type: 'library', name, version, purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}` };
}

/** CycloneDX, as npm writes it for the packages that are installed, with the rest added. */
const document = JSON.parse(
  run('npm', ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--omit=dev']),
);
const node = {
  type: 'application',
  name: 'node',
  version: process.versions.node,
  purl: `pkg:generic/node@${process.versions.node}`,
};
document.components.push(node, ...libraries.map(debianComponent));
process.stdout.write(`${JSON.stringify(document, null, 1)}\n`);
