import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { hasProgram, runProgram } from '../run-program.mjs';
import { systemMajor } from './postgres.mjs';

const policyFile = '/usr/sbin/policy-rc.d';

/** Debian's current major version of Postgres, where none is installed. */
async function offeredMajor() {
  const text = await runProgram('apt-cache', ['depends', 'postgresql']).catch(() => '');
  return /Depends: postgresql-(\d+)/.exec(text)?.[1];
}

/**
 * The packages that a backend lacks.
 * @param {import('./backend.mjs').Backend} backend
 * @param {import('../profile.mjs').Profile} p
 * @returns {Promise<string[]>} may hold `@` for Postgres' major version while that is unknown
 */
export async function missingPackages(backend, p) {
  const done = backend.installed?.(p) ?? true;
  const wanted = { ...backend.programs, ...(done ? {} : backend.installPrograms) };
  const missing = [];
  for (const [program, name] of Object.entries(wanted)) {
    const major = systemMajor() ?? '@';
    const file = program.replace('@', major);
    const there = file.startsWith('/') ? existsSync(file) : await hasProgram(file);
    if (!there) missing.push(name.replace('@', major));
  }
  return missing;
}

/** Keeps package installation from starting daemons; an existing rule of the machine's owner stays as it is. */
async function withoutDaemons(work) {
  if (existsSync(policyFile)) return work();
  writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' });
  try {
    return await work();
  } finally {
    rmSync(policyFile, { force: true });
  }
}

/**
 * Installs packages with apt, as root on a Debian-like system.
 * @param {string[]} names
 * @param {(line: string) => void} progress
 * @throws {Error} that names all the packages when they cannot be installed from here
 */
export async function installPackages(names, progress) {
  const able = process.getuid?.() === 0 && (await hasProgram('apt-get'));
  if (!able) {
    const list = names.map((name) => name.replace('-@', '')).join(' ');
    throw new Error(
      `these system packages are missing: ${list}. Install them, for example: sudo apt-get install ${list}`,
    );
  }
  progress('apt-get update');
  await runProgram('apt-get', ['update', '-qq'], { timeoutMs: 180_000 });
  const major = names.some((name) => name.includes('@')) ? await offeredMajor() : '';
  if (major === undefined) throw new Error('apt-get offers no package postgresql');
  const all = names.map((name) => name.replace('@', major));
  progress(`apt-get install ${all.join(' ')}`);
  let lines = 0;
  const onLine = (line) => {
    lines += 1;
    if (/^Setting up/.test(line) && lines % 8 === 0) progress(line);
  };
  await withoutDaemons(() =>
    runProgram('apt-get', ['install', '-y', '-q', '--no-install-recommends', ...all], {
      env: { DEBIAN_FRONTEND: 'noninteractive' },
      timeoutMs: 600_000,
      mayInterrupt: false,
      onLine,
    }),
  );
}
