import { spawn } from 'node:child_process';

/**
 * Runs a program to its end. Passwords go by `env` or `input`, never by `args`.
 * @param {string} file
 * @param {string[]} args
 * @param {{env?: Record<string, string>, cwd?: string, input?: string, timeoutMs?: number, onLine?: (line: string) => void}} [options]
 * @returns {Promise<string>} what it wrote to standard output
 * @throws {Error} with the last lines of its output when it fails, cannot be found or takes too long
 */
export async function runProgram(file, args, options = {}) {
  const { env, cwd, input = '', timeoutMs = 60_000, onLine } = options;
  const child = spawn(file, args, { cwd, env: { ...process.env, ...env }, stdio: 'pipe' });
  let out = '';
  let both = '';
  const take = (chunk) => {
    // The end of the output is what explains a failure; a build may write megabytes before it.
    both = (both + chunk).slice(-4000);
    for (const line of String(chunk).split('\n')) if (line.trim() !== '') onLine?.(line.trim());
  };
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    out += chunk;
    take(chunk);
  });
  child.stderr.setEncoding('utf8').on('data', take);
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, timeoutMs);
  try {
    const code = await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (late) throw new Error(`${file} took longer than ${timeoutMs / 1000} s`);
    if (code !== 0) throw new Error(`${file} failed: ${both.trim().split('\n').slice(-6).join(' | ')}`);
    return out;
  } finally {
    clearTimeout(timer);
  }
}

/** @returns {boolean} whether a program of this name lies on PATH or in the folders of system programs */
export async function hasProgram(name) {
  return runProgram('/bin/sh', ['-c', 'command -v "$0"', name], {
    env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  }).then(
    () => true,
    () => false,
  );
}
