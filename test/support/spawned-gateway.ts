import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { stringify } from 'yaml';
import { gatewayEnvironment, testDocument } from './environment.js';
import { HANGS_MS } from './eventually.js';

export interface SpawnedGateway {
  readonly url: string;
  readonly process: ChildProcess;
  /** Its configuration, until it ends. */
  readonly file: string;
  /** Lines of its log so far. */
  readonly lines: readonly string[];
  /** SIGTERM; resolves to its exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
}

/** The built gateway (`dist/main.js`) as a child process, on a free port unless the document says otherwise. */
export async function spawnGateway(
  document: Record<string, unknown>,
  environment: Record<string, string> = {},
): Promise<SpawnedGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'portico-test-'));
  const file = join(folder, 'portico.yaml');
  const complete = testDocument({ log: { level: 'info' }, ...document });
  await writeFile(file, stringify(complete), { mode: 0o600 });
  const child = spawn(process.execPath, ['dist/main.js', '--config', file], {
    env: { PATH: process.env.PATH, ...inherited(), ...gatewayEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  void exited.then(() => rm(folder, { recursive: true, force: true }));
  const lines: string[] = [];
  let port: number;
  try {
    port = await listeningPort(child, lines, exited);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return {
    url: `http://127.0.0.1:${port}`,
    process: child,
    file,
    lines,
    stop: () => {
      child.kill('SIGTERM');
      return exited;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/**
 * Marks the child as one of this test run, so that a forgotten one is found; and what was compiled before is compiled
 * once for all: 0.1 of 0.7 s of CPU a start.
 */
function inherited(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] =>
        entry[0].startsWith('PORTICO_TEST_') || entry[0] === 'NODE_COMPILE_CACHE',
    ),
  );
}

async function listeningPort(
  child: ChildProcess,
  lines: string[],
  exited: Promise<number | null>,
): Promise<number> {
  const collect = (stream: NodeJS.ReadableStream | null, onLine: (line: string) => void) => {
    if (stream !== null) createInterface({ input: stream }).on('line', onLine);
  };
  let timer: NodeJS.Timeout | undefined;
  const listening = new Promise<number>((resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no gateway within ${HANGS_MS} ms:\n${lines.join('\n')}`)),
      HANGS_MS,
    );
    collect(child.stderr, (line) => lines.push(line));
    collect(child.stdout, (line) => {
      lines.push(line);
      const entry = parsed(line);
      if (entry?.msg === 'listening' && entry.port !== undefined) resolve(entry.port);
    });
    void exited.then((code) => reject(new Error(`the gateway ended with ${code}:\n${lines.join('\n')}`)));
  });
  try {
    return await listening;
  } finally {
    clearTimeout(timer);
  }
}

function parsed(line: string): { msg?: string; port?: number } | undefined {
  try {
    return JSON.parse(line) as { msg?: string; port?: number };
  } catch {
    return undefined;
  }
}
