import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

interface Package {
  readonly name: string;
  readonly version: string;
  readonly license: string | undefined;
}

/** Under these the gateway may hand a package on; another one is a person's decision. */
const KNOWN = /^(MIT|ISC|Apache-2\.0|0BSD|BSD-[23]-Clause|BlueOak-1\.0\.0)$/;
/** Taken as it is, as a package of its own, which who runs it may exchange. */
const LESSER = ['openpgp'];

const ask = `import('./docs/third-party.mjs').then((m) => console.log(JSON.stringify([m.thirdPartyPackages(), m.thirdPartyPage()])))`;
const [packages, page] = JSON.parse(
  execFileSync(process.execPath, ['--input-type=module', '--eval', ask], { encoding: 'utf8' }),
) as [Package[], string];

it('the page lists the packages of the lock file: npm run docs writes it', () => {
  expect(packages.length).toBeGreaterThan(50);
  expect(readFileSync('docs/third-party.md', 'utf8')).toBe(page);
});

it('every package that comes with the gateway has a licence under which it may', () => {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: object };
  const names = packages.map(({ name }) => name);
  expect(Object.keys(dependencies).filter((name) => !names.includes(name))).toEqual([]);
  const others = packages.filter(({ name, license }) => !KNOWN.test(license ?? '') && !LESSER.includes(name));
  expect(others).toEqual([]);
});
