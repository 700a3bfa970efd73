import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { endWithThisProcess, inherited } from '../bench/server-process.mjs';
import { childrenOf } from './processes.mjs';

const START_MS = 120_000;
const STOP_MS = 40_000;
const SNAPSHOT_MS = 30_000;
/** Levels of the log from here on are somebody's trouble. */
const TROUBLE = 40;

/**
 * The built gateway as users run it, with a probe in each of its processes.
 * @param {object} document its configuration
 * @param {Record<string, string>} environment
 */
export async function startGateway(document, environment) {
  const folder = mkdtempSync(join(tmpdir(), 'portico-soak-'));
  const file = join(folder, 'portico.yaml');
  writeFileSync(file, JSON.stringify(document), { mode: 0o600 });
  const probe = new URL('./probe.mjs', import.meta.url).href;
  const child = spawn(
    process.execPath,
    ['--expose-gc', '--import', probe, 'dist/main.js', '--config', file],
    {
      env: { PATH: process.env.PATH, ...inherited(), ...environment, PORTICO_TEST_SOAK: folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  endWithThisProcess(child);
  const log = { errors: new Map(), last: [] };
  let exit;
  child.once('exit', (code, signal) => {
    exit = signal ?? code;
  });
  const port = await listening(child, log);
  const url = `http://127.0.0.1:${port}`;
  await untilReady(url);
  return {
    url,
    port,
    pid: child.pid,
    log,
    hasExited: () => exit,
    /** The primary and its workers. */
    pids: () => [child.pid, ...childrenOf(child.pid)],
    workers: () => childrenOf(child.pid),
    ready: () => untilReady(url),
    snapshot: (pid, collect) => snapshot(folder, pid, collect),
    /** @returns its exit code */
    stop: async () => {
      if (exit === undefined) {
        const gone = once(child, 'exit');
        child.kill('SIGTERM');
        const cap = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
        await gone;
        clearTimeout(cap);
      }
      rmSync(folder, { recursive: true, force: true });
      return exit;
    },
  };
}

function listening(child, log) {
  const { promise, resolve, reject } = Promise.withResolvers();
  const late = setTimeout(() => reject(new Error(`no gateway:\n${log.last.join('\n')}`)), START_MS);
  child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}:\n${log.last.join('\n')}`)));
  const keep = (line) => {
    log.last.push(line);
    if (log.last.length > 40) log.last.shift();
  };
  createInterface({ input: child.stderr }).on('line', (line) => {
    keep(line);
    count(log.errors, `stderr: ${line.slice(0, 200)}`);
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    keep(line);
    const entry = parsed(line);
    if (entry?.msg === 'listening' && entry.port !== undefined) resolve(entry.port);
    if (entry?.level >= TROUBLE)
      count(
        log.errors,
        `${entry.msg} ${entry.err?.message ?? ''} ${entry.code ?? ''} ${entry.signal ?? ''}`
          .replace(/\d+/g, 'N')
          .slice(0, 200),
      );
  });
  return promise.finally(() => clearTimeout(late));
}

const count = (map, key) => map.set(key, (map.get(key) ?? 0) + 1);

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

async function untilReady(url) {
  const end = performance.now() + START_MS;
  for (;;) {
    const text = await fetch(`${url}/readyz`)
      .then(async (page) => (page.ok ? undefined : await page.text()))
      .catch((error) => error.message);
    if (text === undefined) return;
    if (performance.now() > end) throw new Error(`not ready: ${text}`);
    await sleep(200);
  }
}

/** @returns {Promise<{resources: Record<string, number>, heap: number} | undefined>} nothing where the process does not answer */
async function snapshot(folder, pid, collect) {
  const file = join(folder, `${pid}.json`);
  rmSync(file, { force: true });
  if (collect) writeFileSync(join(folder, 'collect'), '');
  try {
    process.kill(pid, 'SIGUSR2');
    const end = performance.now() + (collect ? SNAPSHOT_MS : 2_000);
    while (performance.now() < end) {
      await sleep(20);
      try {
        return JSON.parse(readFileSync(file, 'utf8'));
      } catch {
        // not there yet
      }
    }
  } catch {
    // it has just ended
  } finally {
    if (collect) rmSync(join(folder, 'collect'), { force: true });
  }
  return undefined;
}
