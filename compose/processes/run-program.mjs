import { spawn } from 'node:child_process';
import { Interrupted, interruption } from './interruption.mjs';

/** How much of the output's end is kept for the error: a build may write megabytes before it fails. */
const keptCharacters = 4_000;

/**
 * Runs a program to its end. Passwords go by `env` or `input`, never by `args`. It gets a session of its own, so that
 * a terminal's Ctrl-C comes to the launcher alone, which then ends it by SIGTERM, unless it must be left to finish.
 * @param {string} file
 * @param {string[]} args
 * @param {object} [options]
 * @param {Record<string, string | undefined>} [options.env] added to this process' environment
 * @param {string} [options.cwd]
 * @param {string} [options.input]
 * @param {number} [options.timeoutMs] it is killed then
 * @param {boolean} [options.mayInterrupt] default true; dpkg, for one, must not be cut off
 * @param {(line: string) => void} [options.onLine] each line that it writes
 * @returns {Promise<string>} what it wrote to standard output
 * @throws {Error} with the last lines of its output when it fails (then with `exitCode` and `output`), cannot be found
 *   or takes too long
 */
export async function runProgram(file, args, options = {}) {
  const { env, cwd, input = '', timeoutMs = 60_000, mayInterrupt = true, onLine } = options;
  if (mayInterrupt && interruption.aborted) throw new Interrupted();
  const child = spawn(file, args, { cwd, env: { ...process.env, ...env }, stdio: 'pipe', detached: true });
  const output = collect(child, onLine);
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  let failure;
  const end = (error, signal) => {
    failure ??= error;
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // It has just ended by itself.
    }
  };
  const late = new Error(`${file} took longer than ${timeoutMs / 1000} s`);
  const timer = setTimeout(() => end(late, 'SIGKILL'), timeoutMs);
  const onInterrupt = () => end(new Interrupted(), 'SIGTERM');
  if (mayInterrupt) interruption.addEventListener('abort', onInterrupt, { once: true });
  try {
    const code = await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (failure) throw failure;
    if (code !== 0) {
      const message = `${file} failed (${code}): ${lastLines(output.all)}`;
      throw Object.assign(new Error(message), { exitCode: code, output: output.all.trim() });
    }
    return output.out;
  } finally {
    clearTimeout(timer);
    interruption.removeEventListener('abort', onInterrupt);
  }
}

function collect(child, onLine) {
  const output = { out: '', all: '' };
  const take = (chunk) => {
    output.all = (output.all + chunk).slice(-keptCharacters);
    for (const line of chunk.split('\n')) if (line.trim() !== '') onLine?.(line.trim());
  };
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    output.out += chunk;
    take(chunk);
  });
  child.stderr.setEncoding('utf8').on('data', take);
  return output;
}

/** One line of the last few, for an error message. */
function lastLines(text) {
  return text.trim().split('\n').slice(-6).join(' | ');
}

/** @returns {Promise<boolean>} whether a program of this name lies on PATH or in the folders of system programs */
export async function hasProgram(name) {
  const env = { PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
  return runProgram('/bin/sh', ['-c', 'command -v "$0"', name], { env }).then(
    () => true,
    () => false,
  );
}
