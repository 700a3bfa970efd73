import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { services } from '../../src/services/index.js';

const text = readFileSync('docs/architecture.md', 'utf8');

/** `src/services/kv` for `kv`, and so on: where the rooms of a row of the table lie. */
const homeOf = (name: string) =>
  ({ http: 'src/http', compose: 'compose', console: 'src/console', page: 'src/console/page' })[name] ??
  join('src/services', name);

const rows = [...text.matchAll(/^\| (\w+) \| (`.*) \|$/gm)].map(([, name = '', cells = '']) => {
  const outsideBrackets = cells.replace(/\([^)]*\)/g, '');
  return {
    home: homeOf(name),
    rooms: [...outsideBrackets.matchAll(/`([^`]+)`/g)].map(([, room = '']) => room),
  };
});

const foldersOf = (home: string) =>
  readdirSync(home, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));

/** Where a name of a folder or file may lie that the page gives without its beginning. */
const ROOTS = [
  '.',
  'docs',
  'src',
  'src/services',
  'compose',
  ...services.map(({ name }) => `src/services/${name}`),
];

const exists = (path: string) => ROOTS.some((root) => existsSync(join(root, path)));

it('finds the table of rooms', () => {
  expect(rows.length).toBeGreaterThanOrEqual(6);
});

it.each(rows)(
  'the rooms of $home on the page of the architecture are its folders, each of them',
  ({ home, rooms }) => {
    expect([...rooms].sort()).toEqual(foldersOf(home).sort());
  },
);

it('each path and file that the page of the architecture names is there', () => {
  const quoted = [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)*\/?)`/g)].map(([, path = '']) => path);
  const drawn = [...text.matchAll(/"([\w./-]+(?:\.ts|\/)): /g)].map(([, path = '']) => path);
  const actors = [...text.matchAll(/participant \w+ as (\w+\/\w+)$/gm)].map(([, path = '']) => path);
  const paths = [...quoted, ...drawn, ...actors].filter((path) => /\/|\.(ts|mjs|ya?ml|hcl)$/.test(path));
  expect(drawn.length).toBeGreaterThan(3);
  expect(actors.length).toBeGreaterThan(5);
  expect(paths.filter((path) => !exists(path) && path !== '.portico')).toEqual([]);
});

it('each file that the page of private parts names is there', () => {
  const parts = readFileSync('docs/private-parts.md', 'utf8');
  const paths = [...parts.matchAll(/`(src\/[\w./-]+)`/g)].map(([, path = '']) => path);
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});
