import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './profile.mjs';
import { runProgram } from './run-program.mjs';

/** What `npm ci` and the compiler made is marked with the digest of what it was made from. */
const packagesMark = join(root, 'node_modules/.portico-lock');
const buildMark = join(root, 'dist/.portico-sources');

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

/** Somebody else's `npm ci` after the last change of the lock file is as good as ours. */
function installedByHand() {
  const hidden = join(root, 'node_modules/.package-lock.json');
  return existsSync(hidden) && statSync(hidden).mtimeMs >= statSync(join(root, 'package-lock.json')).mtimeMs;
}

/**
 * Installs the packages that the lock file names, when they are missing or another lock file's.
 * @param {(line: string) => void} progress
 */
export async function ensurePackages(progress) {
  const wanted = digest(['package-lock.json']);
  if (hasMark(packagesMark, wanted)) return;
  if (existsSync(packagesMark) || !installedByHand()) {
    progress('installing the packages (npm ci)');
    await runProgram('npm', ['ci', '--no-audit', '--no-fund'], { cwd: root, timeoutMs: 300_000 });
  }
  writeFileSync(packagesMark, wanted);
}

/**
 * Compiles `src` into `dist`, when that is missing or older.
 * @param {(line: string) => void} progress
 * @throws {Error} with the compiler's words
 */
export async function ensureBuild(progress) {
  const sources = readdirSync(join(root, 'src'), { recursive: true })
    .map((name) => join('src', String(name)))
    .filter((name) => name.endsWith('.ts'))
    .sort();
  const wanted = digest([...sources, 'tsconfig.json', 'package-lock.json']);
  if (hasMark(buildMark, wanted)) return;
  progress('compiling');
  await runProgram('npm', ['run', '--silent', 'build'], { cwd: root, timeoutMs: 180_000 });
  writeFileSync(buildMark, wanted);
}
