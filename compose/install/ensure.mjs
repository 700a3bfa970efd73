import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { withLock } from '../processes/lock.mjs';
import { succeed } from '../processes/processes.mjs';
import { runProgram } from '../processes/run-program.mjs';
import { checkoutLock, checkoutTag, isInstalled, root } from '../state/profile.mjs';
import { npmPlaces } from './npm-places.mjs';

/** What `npm ci` and the compiler made is marked with the digest of what it was made from. */
const packagesMark = join(root, 'node_modules/.portico-lock');
const buildMark = join(root, 'dist/.portico-sources');
/** npm's scripts run on the Node that this is. */
const npmEnvironment = () => ({
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  ...npmPlaces(),
});

function digest(files) {
  const hash = createHash('sha256');
  for (const file of files)
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0');
  return hash.digest('hex');
}

function hasMark(mark, content) {
  return existsSync(mark) && readFileSync(mark, 'utf8') === content;
}

function isWritable(folder) {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Somebody else's `npm ci` after the last change of the lock file is as good as ours. */
function installedByHand() {
  const hidden = join(root, 'node_modules/.package-lock.json');
  return existsSync(hidden) && statSync(hidden).mtimeMs >= statSync(join(root, 'package-lock.json')).mtimeMs;
}

/** And so is somebody else's compiling, where we could not do it. */
function builtByHand(sources) {
  const main = join(root, 'dist/main.js');
  if (isWritable(root) || !existsSync(main)) return false;
  return sources.every((file) => statSync(join(root, file)).mtimeMs <= statSync(main).mtimeMs);
}

const sourceFiles = () =>
  readdirSync(join(root, 'src'), { recursive: true })
    .map((name) => join('src', String(name)))
    .filter((name) => /\.(tsx?|css|html|svg)$/.test(name))
    .sort();

const packagesDigest = () => digest(['package-lock.json']);
const buildDigest = (sources) =>
  digest([...sources, 'compose/install/build.mjs', 'compose/install/build-console.mjs', 'package-lock.json']);

/** Whether npm and its registry are not needed: the packages that the lock file names are there. */
export function hasPackages() {
  if (isInstalled || hasMark(packagesMark, packagesDigest())) return true;
  return !existsSync(packagesMark) && installedByHand();
}

/** Whether the compiled gateway is there. */
export function hasBuild() {
  if (isInstalled) return true;
  const sources = sourceFiles();
  return hasMark(buildMark, buildDigest(sources)) || builtByHand(sources);
}

/** @throws {Error} where something is missing from a checkout that may only be read */
export function demandCheckout() {
  const what = hasPackages() ? 'the gateway is not compiled' : 'the packages are missing';
  if ((hasPackages() && hasBuild()) || isWritable(root)) return;
  throw new Error(
    `${what}, and ${root} cannot be written: run npm ci and npm run build where it can, and set PORTICO_STATE_DIR.`,
  );
}

/**
 * Installs the packages that the lock file names, when they are missing or another lock file's.
 * @param {(line: string) => void} progress
 * @throws {Error} with npm's words
 */
export async function ensurePackages(progress) {
  if (!hasPackages()) {
    progress('installing the packages (npm ci)');
    const env = { ...npmEnvironment(), ...(await succeed(checkoutTag)) };
    const options = { cwd: root, env, timeoutMs: 300_000 };
    await runProgram('npm', ['ci', '--no-audit', '--no-fund'], options);
    writeFileSync(packagesMark, packagesDigest());
  }
}

/**
 * Compiles `src` into `dist`, when that is missing or older.
 * @param {(line: string) => void} progress
 * @throws {Error} with the compiler's words
 */
export async function ensureBuild(progress) {
  if (hasBuild()) return;
  progress('compiling');
  const env = { ...npmEnvironment(), ...(await succeed(checkoutTag)) };
  const options = { cwd: root, env, timeoutMs: 180_000 };
  await runProgram('npm', ['run', '--silent', 'build'], options);
  writeFileSync(buildMark, buildDigest(sourceFiles()));
}

/** For whoever writes into `dist` by himself. */
export function forgetBuild() {
  rmSync(buildMark, { force: true });
}

/**
 * Both, for whoever runs the gateway's program; other launchers of this checkout wait.
 * @param {(name: string, line: string) => void} say
 */
export async function ensureGateway(say) {
  if (hasPackages() && hasBuild()) return;
  const waiting = (pid) =>
    say('packages', `another launcher is installing them (process ${pid}); waiting for it`);
  const work = async () => {
    await ensurePackages((line) => say('packages', line));
    await ensureBuild((line) => say('build', line));
  };
  await withLock(checkoutLock, work, waiting);
}
