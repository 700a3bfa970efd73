import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const SOURCE = join(process.cwd(), 'src');
const COMPOSE = join(process.cwd(), 'compose');

interface Import {
  readonly file: string;
  readonly target: string;
  readonly typeOnly: boolean;
}

const files = (readdirSync(SOURCE, { recursive: true }) as string[]).filter((file) => /\.tsx?$/.test(file));
const textOf = (file: string) => readFileSync(join(SOURCE, file), 'utf8');

/** The page of the console has files with markup in them. */
const sourceOf = (path: string) =>
  path.replace(/\.js$/, existsSync(join(SOURCE, path.replace(/\.js$/, '.tsx'))) ? '.tsx' : '.ts');

/** Every static import or re-export of a file; local ones as paths below `src`. */
function importsOf(file: string): Import[] {
  const statements = textOf(file).matchAll(
    /^(?:import|export)\s+(type\s+)?(?:[^;'"]*?\sfrom\s+)?['"]([^'"]+)['"];/gm,
  );
  return [...statements].map(([, type, target]) => ({
    file,
    typeOnly: type !== undefined,
    target: (target as string).startsWith('.')
      ? sourceOf(relative(SOURCE, join(SOURCE, dirname(file), target as string)))
      : (target as string),
  }));
}

/** Every import of the launcher's scripts from one another, those for types and at run time included. */
function importsOfScripts(): Pick<Import, 'file' | 'target'>[] {
  const scripts = (readdirSync(COMPOSE, { recursive: true }) as string[]).filter((file) =>
    file.endsWith('.mjs'),
  );
  return scripts.flatMap((file) => {
    const found = readFileSync(join(COMPOSE, file), 'utf8').matchAll(
      /\b(?:from\s+|import\s*\(?\s*)['"](\.[^'"]+)['"]/g,
    );
    return [...found].map(([, target]) => ({
      file: join('compose', file),
      target: join('compose', dirname(file), target as string),
    }));
  });
}

const imports = files.flatMap(importsOf);
const local = imports.filter(({ target }) => /\.tsx?$/.test(target));
const scripts = importsOfScripts();

/** What a file may import, by the first pattern that fits it. */
const ALLOWED: readonly (readonly [RegExp, RegExp])[] = [
  [/^lib\//, /^lib\//],
  // what lies beside the rooms of http is what others may use of it
  [/^http\/[^/]+\.ts$/, /^http\/[^/]+\.ts$|^lib\//],
  [/^http\//, /^(http|lib)\//],
  [/^services\/service\.ts$/, /^(http|lib)\//],
  [/^services\/[^/]+\.ts$/, /^(services|http|lib)\//],
  [
    /^services\//,
    /^(lib\/|http\/(route|raw-stream|errors|headers|body|query|audit|idempotency)\.ts$|services\/service\.ts$|services\/\$SELF\/)/,
  ],
  [/^access\//, /^(access|lib)\/|^http\/[^/]+\.ts$/],
  // the page runs in browsers: it shares nothing with the gateway but what the gateway answers
  [/^console\/page\//, /^console\/page\//],
  [/^console\/settings\.ts$/, /^lib\//],
  [/^console\//, /^(console\/(?!page\/)|http\/|lib\/)/],
  [/^main\.ts$/, /./],
  [
    /^workers\//,
    /^(workers|http|lib)\/|^config\/schema\.ts$|^(gateway|services\/service|console\/series\/request-series)\.ts$/,
  ],
  [/^config\//, /^(config\/|lib\/|(http|access|console)\/settings\.ts$|services\/[^/]+\.ts$)/],
  [
    /^gateway\.ts$/,
    /^(lib\/|http\/|access\/(access|open-kept-calls)\.ts$|services\/[^/]+\.ts$|config\/schema\.ts$|console\/(console|settings|series\/request-series)\.ts$)/,
  ],
];

it('finds the imports at all', () => {
  expect(files.length).toBeGreaterThan(40);
  expect(local.length).toBeGreaterThan(100);
  expect(scripts.length).toBeGreaterThan(100);
});

it('lets imports run one way: main, gateway, http and services, lib', () => {
  const wrong = local.filter(({ file, target }) => {
    const rule = ALLOWED.find(([of]) => of.test(file));
    const self = /^services\/([^/]+)\//.exec(file)?.[1] ?? '';
    return rule === undefined || !new RegExp(rule[1].source.replace('\\$SELF', self)).test(target);
  });
  expect(wrong).toEqual([]);
});

/** The rooms of a folder: each imports from itself, from those behind it, and from the files that lie beside the rooms. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  'services/kv': [
    ...['api', 'database', 'cluster', 'streams', 'replicas', 'emulations'],
    ...['redis', 'commands', 'auth', 'resp'],
  ],
  'services/vector': [
    ...['api', 'managed', 'search', 'embedder', 'tables'],
    ...['records', 'filter', 'statements', 'schemas'],
  ],
  'services/broker': ['api', 'peers', 'group', 'produce', 'read', 'kafka', 'records'],
  'services/queue': [
    ...['api', 'schedules', 'workflow', 'intake', 'delivery', 'destinations'],
    ...['order', 'rabbitmq', 'store', 'message'],
  ],
  http: ['server', 'operations', 'routing', 'exchange', 'monitoring', 'head'],
  console: ['api', 'series', 'codes', 'files', 'page'],
  'console/page': ['app', 'overview', 'screens', 'parts', 'data', 'style', 'public'],
  // what lies beside these is what users call
  compose: ['launcher', 'conform', 'move', 'install', 'backends', 'docker', 'native', 'state', 'processes'],
};

it.each(Object.entries(ROOMS))('lets imports between the rooms of %s run one way', (folder, rooms) => {
  const roomOf = (file: string) => {
    const [room, inner] = file.startsWith(`${folder}/`) ? file.slice(folder.length + 1).split('/') : [];
    return inner === undefined ? undefined : room;
  };
  const wrong = [...local, ...scripts].filter(({ file, target }) => {
    const [from, to] = [roomOf(file), roomOf(target)];
    if (folder === 'compose' && from !== undefined && target.startsWith('compose/') && to === undefined)
      return true;
    if (from === undefined || to === undefined || from === to) return false;
    return !rooms.includes(from) || rooms.indexOf(to) < rooms.indexOf(from);
  });
  expect(wrong).toEqual([]);
});

it('has no import circle, types included', () => {
  const graph = new Map<string, string[]>();
  for (const { file, target } of [...local, ...scripts])
    graph.set(file, [...(graph.get(file) ?? []), target]);
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) throw new Error(`circle: ${[...path, file].join(' -> ')}`);
    if (done.has(file)) return;
    for (const target of graph.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
});

it('imports each driver as a value in one file only', () => {
  const homes: Readonly<Record<string, RegExp>> = {
    ioredis: /^(services\/kv\/redis\/connection|lib\/redis\/redis)\.ts$/,
    pgvector: /^services\/vector\/vector-database\.ts$/,
    amqplib: /^services\/queue\/rabbitmq\/client\.ts$/,
    pg: /^lib\/postgres\/postgres\.ts$/,
    kafkajs: /^services\/broker\/kafka\/(client|kafkajs-internals)\.ts$/,
    undici: /^lib\/outbound\/(outbound|connector)\.ts$/,
  };
  const wrong = imports.filter(({ file, target, typeOnly }) => {
    const home = homes[target.split('/')[0] as string];
    return !typeOnly && home !== undefined && !home.test(file);
  });
  expect(wrong).toEqual([]);
});

it('reads `process` in main.ts only', () => {
  // the page has no process; it shows programs that have one
  const own = files.filter((file) => !file.startsWith('console/page/'));
  const readers = own.filter((file) => /(?<!\.)\bprocess\.|from 'node:process'/.test(textOf(file)));
  expect(readers).toEqual(['main.ts']);
});
