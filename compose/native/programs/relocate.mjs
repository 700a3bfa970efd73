import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { isAbsolute, join, relative } from 'node:path';
import { runProgram } from '../../processes/run-program.mjs';

/** Ends the name of a copy that a relocation which was cut off has left. */
const copyEnd = '.relocating';

/** A command line holds more, but not on every system. */
const filesPerCall = 200;

/** Whether a file is a program for this kind of machine that names its loader (ELF, program header PT_INTERP = 3). */
function isExecutable(file) {
  const fd = openSync(file, 'r');
  try {
    const head = Buffer.alloc(4096);
    const length = readSync(fd, head, 0, head.length, 0);
    if (length < 64 || head.readUInt32BE(0) !== 0x7f454c46 || head[4] !== 2) return false;
    const [offset, size, count] = [
      Number(head.readBigUInt64LE(32)),
      head.readUInt16LE(54),
      head.readUInt16LE(56),
    ];
    for (let entry = 0; entry < count; entry += 1) {
      const at = offset + entry * size;
      if (at + 4 <= length && head.readUInt32LE(at) === 3) return true;
    }
    return false;
  } finally {
    closeSync(fd);
  }
}

function executablesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return executablesBelow(path);
    return entry.isFile() && isExecutable(path) ? [path] : [];
  });
}

/** Changes copies and moves them to their places: patchelf empties a file before it writes it, and may be cut off. */
async function patch(files, run) {
  const rows = files.map((file) => ({ file, copy: `${file}.${process.pid}${copyEnd}` }));
  for (const { file, copy } of rows) copyFileSync(file, copy);
  await run(rows.map(({ copy }) => copy));
  for (const { file, copy } of rows) renameSync(copy, file);
}

/** Debian's links from the root of a system, such as Java's settings in /etc, lead into the tree instead. */
function turnLinks(tree, folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) turnLinks(tree, path);
    if (!entry.isSymbolicLink() || !isAbsolute(readlinkSync(path))) continue;
    const target = join(tree, readlinkSync(path));
    const copy = `${path}${copyEnd}`;
    rmSync(copy, { force: true });
    symlinkSync(relative(folder, target), copy);
    renameSync(copy, path);
  }
}

/** The tree's own folder of libraries and its loader of programs. */
export function loaderOf(tree) {
  for (const name of readdirSync(join(tree, 'usr/lib'))) {
    const libraries = join(tree, 'usr/lib', name);
    if (!existsSync(join(libraries, 'libc.so.6'))) continue;
    const loader = readdirSync(libraries).find((file) => /^ld-linux.*\.so\.\d+$/.test(file));
    if (loader) return { libraries, loader: join(libraries, loader) };
  }
  throw new Error(`${tree} holds no loader of programs`);
}

const markOf = (tree) => join(tree, 'relocated-to');

/** @returns {boolean} whether the tree's programs run from where the tree is now, whatever link leads there */
export const isRelocated = (tree) =>
  existsSync(markOf(tree)) && readFileSync(markOf(tree), 'utf8') === realpathSync(tree);

/**
 * Lets a tree's programs run beside an older system, from where the tree lies: each gets the tree's own loader and
 * libraries, as absolute paths. DT_RPATH, unlike DT_RUNPATH, holds for what the libraries need in their turn as well.
 * @param {string} folder the tree
 * @param {string} patchelf the tree of that program
 * @param {string} [runPath] further folders of libraries
 */
export async function relocate(folder, patchelf, runPath) {
  const tree = realpathSync(folder);
  turnLinks(tree, tree);
  const own = loaderOf(tree);
  const tool = loaderOf(patchelf);
  const path = [own.libraries, ...(runPath ? [runPath] : [])].join(':');
  const settings = ['--set-interpreter', own.loader, '--force-rpath', '--set-rpath', path];
  const found = executablesBelow(join(tree, 'usr'));
  const files = found.filter((file) => !file.endsWith(copyEnd));
  for (const file of found) if (file.endsWith(copyEnd)) rmSync(file);
  // the loader itself, and libraries that can be called, name no loader or their own
  const programs = files.filter((file) => file !== own.loader && !/\.so(\.\d+)*$/.test(file));
  for (let from = 0; from < programs.length; from += filesPerCall)
    await patch(programs.slice(from, from + filesPerCall), (copies) =>
      runProgram(tool.loader, [
        ...['--library-path', tool.libraries, join(patchelf, 'usr/bin/patchelf'), ...settings],
        ...copies,
      ]),
    );
  writeFileSync(markOf(tree), tree);
}
