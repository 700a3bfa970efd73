import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { backendAddress } from '../support/environment.js';
import { freePort } from '../support/free-port.js';

// Packing compiles nothing here, but a busy machine takes seconds for each of these programs.
jest.setTimeout(120_000);

const run = promisify(execFile);
let folder: string;
let home: string;
let environment: NodeJS.ProcessEnv;

/** The installed command, called in the user's folder. */
async function portico(...args: string[]): Promise<{ code: number; out: string }> {
  const options = { cwd: folder, env: environment };
  const file = join(folder, 'node_modules/.bin/portico');
  return run(file, args, options).then(
    ({ stdout, stderr }) => ({ code: 0, out: stderr + stdout }),
    ({ code, stdout, stderr }) => ({ code, out: stderr + stdout }),
  );
}

/** As npm installs it, but with the packages of the checkout instead of fetched ones. */
async function install(): Promise<void> {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder];
  const { stdout } = await run('npm', args);
  home = join(folder, 'node_modules/portico');
  await mkdir(home, { recursive: true });
  await run('tar', ['-xzf', join(folder, stdout.trim()), '-C', home, '--strip-components=1']);
  const { dependencies } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies))
    symlinkSync(resolve('node_modules', name), join(folder, 'node_modules', name));
  await mkdir(join(folder, 'node_modules/.bin'));
  const { bin } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  symlinkSync(join(home, bin.portico), join(folder, 'node_modules/.bin/portico'));
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portico-test-package-'));
  await install();
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('PORTICO_') || name === 'PORTICO_TEST_RUN',
  );
  environment = {
    ...Object.fromEntries(inherited),
    PORTICO_HTTP_PORT: String(await freePort()),
    PORTICO_REDIS_URL: backendAddress('PORTICO_REDIS_URL'),
    PORTICO_VECTOR_ENABLED: 'false',
    PORTICO_BROKER_ENABLED: 'false',
    PORTICO_QUEUE_ENABLED: 'false',
    PORTICO_BACKENDS: 'native',
  };
});

afterAll(async () => {
  await portico('stop');
  await rm(folder, { recursive: true, force: true });
});

it('holds what runs it, and nothing of how it is made', () => {
  const names = readdirSync(home).sort();
  expect(names).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'compose', 'config', 'dist']));
  for (const name of ['src', 'test', 'package-lock.json', 'tsconfig.json', '.portico', '.ci'])
    expect([name, names.includes(name)]).toEqual([name, false]);
  for (const name of ['compose/native', 'dist/docs/scalar.js', 'dist/docs/scalar.LICENSE'])
    expect([name, existsSync(join(home, name))]).toEqual([name, true]);
  for (const name of ['compose/launcher/dev.mjs', 'docs/generate.mjs'])
    expect([name, existsSync(join(home, name))]).toEqual([name, false]);
});

it('could be published', () => {
  const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  expect(manifest.private).toBeUndefined();
  expect(manifest.publishConfig).toEqual({ access: 'public', provenance: true });
});

it('answers before it has made anything', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(await portico('--version')).toEqual({ code: 0, out: `${version}\n` });
  expect(await portico('status')).toEqual({ code: 3, out: 'Nothing runs.\n' });
  const check = await portico('check');
  expect(JSON.parse(check.out)).toMatchObject({ services: ['kv'] });
  expect(existsSync(join(folder, '.portico'))).toBe(false);
});

it('starts and stops, with its state in the folder where it is called, and writes nothing into its own', async () => {
  const before = (readdirSync(home, { recursive: true }) as string[]).sort();
  expect(await portico('start', '--detach')).toEqual({
    code: 0,
    out: expect.stringContaining('portico stop ends it.'),
  });
  expect(existsSync(join(folder, '.portico/connection.env'))).toBe(true);
  expect((await portico('status')).out).toMatch(/^gateway +ready/m);
  expect(await portico('stop')).toEqual({ code: 0, out: expect.stringContaining('Stopped.') });
  expect((readdirSync(home, { recursive: true }) as string[]).sort()).toEqual(before);
});
