import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../compose/state/profile.mjs';

/**
 * Packages that come with the gateway, by the lock file.
 * @returns {{name: string, version: string, license: string, text: string | undefined}[]} text: name of the file with it, in the package
 */
export function thirdPartyPackages() {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return Object.entries(packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
    .map(([path, { version, license }]) => {
      const folder = join(root, path);
      const files = existsSync(folder) ? readdirSync(folder) : [];
      return {
        name: path.replace(/^.*node_modules\//, ''),
        version,
        license,
        text: files.find((file) => /^(licen[sc]e|copying)/i.test(file)),
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The page of them. */
export function thirdPartyPage() {
  const rows = thirdPartyPackages().map(
    ({ name, version, license }) =>
      `| [${name}](https://www.npmjs.com/package/${name}) | ${version} | ${license} |`,
  );
  return `# Third-party licences

Portico is under the [Apache License 2.0](../LICENSE). These packages come with it, each with its own licence, whose text lies in the package's folder below \`node_modules\`; \`npm run docs\` writes the list from the lock file.

| package | version | licence |
|---|---|---|
${rows.join('\n')}

The page \`/docs\` is drawn by [Scalar](https://github.com/scalar/scalar) (MIT), one file that the build fetches; the text of its licence lies beside it.

Backends that \`npm start\` fetches (Redis, PostgreSQL, pgvector, Kafka, RabbitMQ, a Java runtime) are packages of Debian and jars of Apache Kafka. [Their list](native-programs.md) says where each comes from and under which licence; the texts lie with them in \`.portico/programs\`.
`;
}
