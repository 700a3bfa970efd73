import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { withLock } from '../processes/lock.mjs';
import { succeed } from '../processes/processes.mjs';
import { runProgram } from '../processes/run-program.mjs';
import { installTag, isInstalled, root, stateDir } from '../state/profile.mjs';
import { npmPlaces } from './npm-places.mjs';

/** The Node, and the npm, that are fetched where an older Node is installed, with their digests. */
const locked = JSON.parse(readFileSync(new URL('node-lock.json', import.meta.url), 'utf8'));

const home = join(stateDir, 'programs', `node-${locked.version}`);
const program = join(home, 'node_modules/.bin/node');
/** 60 MB at 200 kB/s. */
const downloadLimitMs = 300_000;

/** @returns {string | undefined} the program of the Node that an earlier start fetched */
export const fetchedNode = () => (existsSync(program) ? program : undefined);

/** Where npm looks for the settings of a project: the checkout, or the folder of whoever uses the package. */
const npmFolder = isInstalled ? process.cwd() : root;

/** The npm that started this process, else the first on PATH. */
export function npm(args, options = {}) {
  const { npm_execpath: own = '' } = process.env;
  const [file, first] = basename(own) === 'npm-cli.js' ? [process.execPath, [own]] : ['npm', []];
  return runProgram(file, [...first, ...args], {
    cwd: npmFolder,
    ...options,
    env: { ...npmPlaces(), ...options.env },
  });
}

/** @throws {Error} when what npm has packed is not what the lock file names */
async function download({ name, version, integrity }, folder, env) {
  const args = ['pack', `${name}@${version}`, '--silent', '--pack-destination', folder];
  const said = await npm(args, { env, timeoutMs: downloadLimitMs });
  const file = join(folder, said.trim().split('\n').at(-1) ?? '');
  const digest = createHash('sha512').update(readFileSync(file)).digest('base64');
  if (`sha512-${digest}` !== integrity)
    throw new Error(
      `${name} ${version} as the registry gives it is not what compose/install/node-lock.json names`,
    );
  return file;
}

/** Headers for compilers, half of its size, and pages of the manual. */
const unwanted = ['include', 'share'].map((folder) => `--exclude=package/${folder}`);

/** tar, which every system with glibc has, takes a second where npm's own installing took most of a minute. */
async function unpack(file, folder, env) {
  mkdirSync(folder, { recursive: true });
  const args = ['-xzf', file, '-C', folder, '--strip-components=1', '--no-same-owner', ...unwanted];
  await runProgram('tar', args, { env, timeoutMs: downloadLimitMs });
  rmSync(file);
}

async function install() {
  const half = `${home}.new`;
  const env = await succeed(installTag);
  rmSync(half, { recursive: true, force: true });
  const modules = join(half, 'node_modules');
  mkdirSync(join(modules, '.bin'), { recursive: true });
  const node = locked.node[process.arch];
  await Promise.all(
    [node, locked.npm].map(async (one) =>
      unpack(await download(one, half, env), join(modules, one.name), env),
    ),
  );
  const commands = { node: `${node.name}/bin/node`, npm: 'npm/bin/npm-cli.js', npx: 'npm/bin/npx-cli.js' };
  for (const [name, file] of Object.entries(commands))
    symlinkSync(join('..', file), join(modules, '.bin', name));
  rmSync(home, { recursive: true, force: true });
  renameSync(half, home);
}

/**
 * Fetches the Node that the gateway is made for.
 * @returns {Promise<string>} its program
 * @throws {Error} in one sentence
 */
export async function fetchNode() {
  const { node } = process.versions;
  if (process.platform !== 'linux' || locked.node[process.arch] === undefined)
    throw new Error(
      `Portico needs Node 22.19 or newer, and this is Node ${node}: install Node ${locked.version}.`,
    );
  mkdirSync(join(stateDir, 'programs'), { recursive: true });
  await withLock(join(stateDir, 'install.lock'), async () => {
    if (fetchedNode() !== undefined) return;
    console.error(
      `Node ${node} is too old for the gateway: fetching Node ${locked.version} into ${home} (55 MB)`,
    );
    await install();
  });
  return program;
}
