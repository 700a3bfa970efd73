import { spawn } from 'node:child_process';
import { closeSync, createReadStream, mkdirSync, openSync, readSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Interrupted, interruption } from '../../processes/interruption.mjs';
import { hasProgram } from '../../processes/run-program.mjs';

/** Where the member `data.tar.xz` of a .deb lies: an ar archive, whose heads of 60 bytes hold name and size as text. */
function dataMember(deb) {
  const fd = openSync(deb, 'r');
  try {
    const head = Buffer.alloc(60);
    for (let at = 8; readSync(fd, head, 0, 60, at) === 60; ) {
      const name = head.toString('latin1', 0, 16).replace(/[/ ]+$/, '');
      const size = Number.parseInt(head.toString('latin1', 48, 58), 10);
      if (name.startsWith('data.tar')) return { name, start: at + 60, end: at + 60 + size - 1 };
      at += 60 + size + (size % 2);
    }
  } finally {
    closeSync(fd);
  }
  throw new Error(`${deb} is no package of Debian`);
}

/** Waits for a program of a chain. */
function ended(child, name) {
  let words = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    words = (words + text).slice(-600);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0
        ? resolve(undefined)
        : reject(new Error(`${name} failed: ${words.trim() || `code ${code}`}`)),
    );
  });
}

/** tar ends when it has seen the archive's end; what its sender pads behind that goes nowhere. */
function feed(source, sink) {
  sink.on('error', () => undefined);
  sink.once('close', () => source.resume());
  source.pipe(sink);
}

/** @throws {Error} where this system does not have the programs to unpack Debian's packages */
export async function demandUnpacking() {
  const isAble = (await hasProgram('tar')) && ((await hasProgram('dpkg-deb')) || (await hasProgram('xz')));
  if (!isAble)
    throw new Error(
      'no tar with dpkg-deb or xz is on PATH, by which programs are unpacked: add them, or use a Docker engine',
    );
}

/**
 * Makes a program's folder. Packages before Debian 13 hold `lib` beside `usr/lib`, which systems have merged since.
 * @param {string} folder
 */
export function makeTree(folder) {
  for (const name of ['lib', 'lib64', 'bin', 'sbin']) {
    mkdirSync(join(folder, 'usr', name), { recursive: true });
    symlinkSync(join('usr', name), join(folder, name));
  }
}

/**
 * Unpacks a package into a folder, as the user that asks: no script of it runs.
 * @param {string} deb
 * @param {string} folder
 * @param {string[]} omitted patterns of tar
 * @throws {Error} with the words of the program that failed
 */
export async function unpack(deb, folder, omitted) {
  const excludes = omitted.map((pattern) => `--exclude=${pattern}`);
  // In a session of their own, like all that the launcher runs: a terminal's Ctrl-C must not cut them off half-way.
  const options = {
    detached: true,
    stdio: /** @type {['pipe', 'pipe', 'pipe']} */ (['pipe', 'pipe', 'pipe']),
  };
  const tar = spawn(
    'tar',
    ['-x', '-C', folder, '--no-same-owner', '--keep-directory-symlink', ...excludes],
    options,
  );
  const steps = [ended(tar, 'tar')];
  let first;
  if (await hasProgram('dpkg-deb')) {
    first = spawn('dpkg-deb', ['--fsys-tarfile', deb], options);
    first.stdin.end();
    steps.push(ended(first, 'dpkg-deb'));
  } else {
    const { start, end } = dataMember(deb);
    first = spawn('xz', ['-dc'], options);
    steps.push(ended(first, 'xz'));
    feed(createReadStream(deb, { start, end }), first.stdin);
  }
  const stop = () => [first, tar].map((child) => child.kill('SIGKILL'));
  interruption.addEventListener('abort', stop, { once: true });
  try {
    feed(first.stdout, tar.stdin);
    await Promise.all(steps);
  } catch (error) {
    throw interruption.aborted ? new Interrupted() : error;
  } finally {
    interruption.removeEventListener('abort', stop);
    stop();
  }
}
