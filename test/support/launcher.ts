import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { services } from '../../src/services/index.js';
import { freePortBlock } from './free-port.js';

export interface Finished {
  code: number | null;
  out: string;
}

/** A launcher run by itself, on ports and in a folder of its own, for a gateway with the key-value service. */
export interface LauncherUnderTest {
  readonly folder: string;
  /** Of what it runs; to be changed for a while. */
  readonly environment: NodeJS.ProcessEnv;
  /** The first of its ports. */
  readonly base: number;
  portico(...args: string[]): Promise<Finished>;
  control(verb: string, ...names: string[]): Promise<Finished>;
  start(...args: string[]): Promise<Finished>;
  stateFile(...names: string[]): string;
  /** What it wrote of how it is reached. */
  connection(): Record<string, string>;
  /** The reply to a command that the gateway is sent. */
  command(words: string[], timeoutMs?: number): Promise<unknown>;
  remove(): Promise<void>;
}

export async function launcherUnderTest(): Promise<LauncherUnderTest> {
  const folder = await mkdtemp(join(tmpdir(), 'portico-test-launcher-'));
  const base = await freePortBlock();
  const stateFile = (...names: string[]) => join(folder, 'state', ...names);
  const others = services.filter(({ name }) => name !== 'kv').map(({ name }) => [name, { enabled: false }]);
  writeFileSync(join(folder, 'portico.yaml'), stringify(Object.fromEntries(others)));
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('PORTICO_') || name === 'PORTICO_TEST_RUN',
  );
  const environment: NodeJS.ProcessEnv = {
    ...Object.fromEntries(inherited),
    PORTICO_STATE_DIR: stateFile(),
    PORTICO_PORT_BASE: String(base),
    PORTICO_HTTP_PORT: String(base + 9),
    PORTICO_BACKENDS: 'native',
  };
  await shareFetchedPrograms(stateFile());
  const run = (file: string, args: string[]): Promise<Finished> =>
    new Promise((resolve) => {
      const options = { env: environment, timeout: 180_000 };
      execFile(process.execPath, [`compose/${file}`, ...args], options, (error, stdout, stderr) => {
        resolve({
          code: error === null ? 0 : ((error.code as number | undefined) ?? null),
          out: stderr + stdout,
        });
      });
    });
  const connection = () => {
    const lines = readFileSync(stateFile('connection.env'), 'utf8').split('\n');
    const pairs = lines.filter((line) => /^[A-Z_]+=/.test(line));
    return Object.fromEntries(
      pairs.map((line) => [line.split('=')[0] as string, line.slice(line.indexOf('=') + 1)]),
    );
  };
  const portico = (...args: string[]) => run('portico.mjs', args);
  return {
    folder,
    environment,
    base,
    stateFile,
    connection,
    portico,
    control: (verb, ...names) => run('backends.mjs', [verb, ...names]),
    start: (...args) => portico('start', '--config', join(folder, 'portico.yaml'), ...args),
    command: async (words, timeoutMs = 60_000) => {
      const { PORTICO_KV_URL: url = '', PORTICO_KV_TOKEN: token = '' } = connection();
      const answer = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify(words),
        signal: AbortSignal.timeout(timeoutMs),
      });
      return answer.json();
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** The programs of this test run are there as if an earlier start had fetched them. */
async function shareFetchedPrograms(state: string): Promise<void> {
  await mkdir(state, { recursive: true });
  const [programs = ''] = (process.env.PORTICO_TEST_REDIS_NEWEST ?? '').split(/\/redis-[^/]+\/usr\/bin\//);
  symlinkSync(programs, join(state, 'programs'));
}
