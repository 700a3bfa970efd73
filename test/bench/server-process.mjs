import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** Ticks of /proc/PID/stat a second on Linux. */
const TICKS = 100;
const START_MS = 20_000;
const STOP_MS = 10_000;

/**
 * A server under load as a process of its own, so that its CPU time and memory are its own.
 * @param {{ args: string[], env?: Record<string, string>, portOf: (line: string) => number | undefined,
 *   onLine?: (line: string) => void }} options
 *   `args` for node; `portOf` finds the port in a line of its standard output, `onLine` gets every one
 */
export async function startServer({ args, env = {}, portOf, onLine }) {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, ...inherited(), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  endWithThisProcess(child);
  const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? code)));
  let timer;
  const port = await new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${args[0]} did not listen within ${START_MS} ms`)), START_MS);
    exited.then((code) => reject(new Error(`${args[0]} ended with ${code}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      onLine?.(line);
      const found = portOf(line);
      if (found !== undefined) resolve(found);
    });
  }).catch((error) => {
    child.kill('SIGKILL');
    throw error;
  });
  clearTimeout(timer);
  return {
    port,
    pid: child.pid,
    /** Resolves to the exit code, or the signal, when the process has ended. */
    exited,
    cpuSeconds: () => cpuSeconds(child.pid),
    rssMegabytes: () => rssMegabytes(child.pid),
    stop: async () => {
      child.kill('SIGTERM');
      const cap = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await exited;
      clearTimeout(cap);
    },
  };
}

/** However this process ends, but for SIGKILL. @param {import('node:child_process').ChildProcess} child */
export function endWithThisProcess(child) {
  const end = () => child.kill('SIGKILL');
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));
}

/** Marks the child as one of a test run, so that a forgotten one is found. */
export function inherited() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('PORTICO_TEST_')));
}

/** User and system time of a process. @param {number} pid */
export function cpuSeconds(pid) {
  // the program's name, in parentheses, may hold blanks
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** @param {number} pid */
export function rssMegabytes(pid) {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
  return Number(kilobytes) / 1_024;
}
