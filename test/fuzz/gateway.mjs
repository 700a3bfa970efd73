import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { endWithThisProcess, inherited } from '../bench/server-process.mjs';

const START_MS = 60_000;
/** An answer of the probe waits until the loop is free again. */
const ANSWER_MS = 180_000;
const MIB = 1024 * 1024;

/**
 * The built gateway as a child process whose loop and memory are watched.
 * @param {object} document its configuration
 * @param {Record<string, string>} environment
 */
export async function startWatched(document, environment) {
  const folder = await mkdtemp(join(tmpdir(), 'portico-fuzz-'));
  const file = join(folder, 'portico.yaml');
  await writeFile(file, JSON.stringify(document), { mode: 0o600 });
  const probe = new URL('./probe.mjs', import.meta.url).href;
  const child = spawn(
    process.execPath,
    ['--expose-gc', '--import', probe, 'dist/main.js', '--config', file],
    {
      env: { PATH: process.env.PATH, ...inherited(), ...environment },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
  );
  endWithThisProcess(child);
  let exited = false;
  child.once('exit', () => {
    exited = true;
  });
  const lines = [];
  const port = await listeningPort(child, lines).finally(() => rm(folder, { recursive: true, force: true }));
  const url = `http://127.0.0.1:${port}`;
  await untilReady(url, () => exited);
  const ask = async (question) => {
    if (exited) throw new Error(`the gateway has ended: ${lines.slice(-5).join('\n')}`);
    child.send(question);
    const answered = new AbortController();
    const signal = AbortSignal.any([answered.signal, AbortSignal.timeout(ANSWER_MS)]);
    const ended = once(child, 'exit', { signal }).then(() => {
      throw new Error(`the gateway has ended: ${lines.slice(-5).join('\n')}`);
    });
    ended.catch(() => undefined);
    const [answer] = await Promise.race([once(child, 'message', { signal }), ended]).finally(() =>
      answered.abort(),
    );
    return answer;
  };
  return {
    port,
    url,
    pid: child.pid,
    lines,
    hasExited: () => exited,
    calibrate: async () => (await ask('calibrate')).ms,
    /** Begins to watch: garbage is collected, and highest memory counts from now. @returns its memory in bytes */
    begin: async () => {
      await ask('collect');
      await writeFile(`/proc/${child.pid}/clear_refs`, '5').catch(() => undefined);
      return (await memory(child.pid)).rss;
    },
    /** @returns the longest time that the loop stood still, in ms, and the highest memory, in bytes, since `begin` */
    end: async () => ({ stopMs: (await ask('read')).stopMs, peak: (await memory(child.pid)).peak }),
    stop: async () => {
      if (exited) return;
      const done = once(child, 'exit');
      child.kill('SIGTERM');
      const cap = setTimeout(() => child.kill('SIGKILL'), 20_000);
      await done;
      clearTimeout(cap);
    },
  };
}

async function listeningPort(child, lines) {
  const keep = (line) => {
    lines.push(line);
    if (lines.length > 1_000) lines.splice(0, 500);
  };
  createInterface({ input: child.stderr }).on('line', keep);
  const { promise, resolve, reject } = Promise.withResolvers();
  createInterface({ input: child.stdout }).on('line', (line) => {
    keep(line);
    const found = /"port":(\d+).*"msg":"listening"/.exec(line)?.[1];
    if (found !== undefined) resolve(Number(found));
  });
  const late = setTimeout(() => reject(new Error(`no gateway:\n${lines.join('\n')}`)), START_MS);
  child.once('exit', () => reject(new Error(`the gateway ended:\n${lines.join('\n')}`)));
  return promise.finally(() => clearTimeout(late));
}

async function untilReady(url, hasExited) {
  const end = performance.now() + START_MS;
  for (;;) {
    const page = await fetch(`${url}/readyz`);
    const text = await page.text();
    if (page.status === 200) return;
    if (hasExited() || performance.now() > end) throw new Error(`not ready: ${text}`);
    await sleep(100);
  }
}

/** @returns {Promise<{ rss: number, peak: number }>} in bytes */
async function memory(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'latin1');
  const of = (name) => (Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * MIB) / 1024;
  return { rss: of('VmRSS'), peak: of('VmHWM') };
}
