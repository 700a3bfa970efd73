import { execFile } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePortBlock } from '../support/free-port.js';

/**
 * Everything run as a user who has no entry in /etc/passwd: `docker run --user 12345`, some CI systems. The folder's name
 * has what programs that read names of files from settings are apt to get wrong.
 */
const UID = 54_321;
const asNameless =
  process.getuid?.() === 0
    ? // the checkout may lie where only root can pass
      [
        ...['setpriv', `--reuid=${UID}`, `--regid=${UID}`, '--clear-groups', '--securebits=+no_setuid_fixup'],
        ...['inh-caps', 'ambient-caps', 'bounding-set'].map((set) => `--${set}=-all,+dac_override`),
      ]
    : ['unshare', '--user', `--map-user=${UID}`, `--map-group=${UID}`];

let folder: string;
let environment: NodeJS.ProcessEnv;

function run(...args: string[]): Promise<{ code: number; out: string }> {
  const [file = '', ...rest] = [...asNameless, process.execPath, ...args];
  return new Promise((resolve) => {
    execFile(file, rest, { env: environment, timeout: 120_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out: err + out });
    });
  });
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portico test #1 ünnamed-'));
  const state = join(folder, 'state');
  mkdirSync(state);
  const [programs = ''] = (process.env.PORTICO_TEST_REDIS_NEWEST ?? '').split(/\/redis-[^/]+\/usr\/bin\//);
  symlinkSync(programs, join(state, 'programs'));
  if (process.getuid?.() === 0) for (const path of [folder, state]) chownSync(path, UID, UID);
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('PORTICO_') || name === 'PORTICO_TEST_RUN',
  );
  environment = {
    ...Object.fromEntries(inherited),
    HOME: '/',
    PORTICO_STATE_DIR: state,
    PORTICO_PORT_BASE: String(await freePortBlock()),
    PORTICO_BACKENDS: 'native',
  };
});

afterAll(async () => {
  await run('compose/backends.mjs', 'stop');
  rmSync(folder, { recursive: true, force: true });
});

it('has no name', async () => {
  const { out } = await run('-p', 'process.getuid()');
  expect(out.trim()).toBe(String(UID));
  expect(readFileSync('/etc/passwd', 'utf8')).not.toContain(`:${UID}:`);
});

it('makes his backends all the same', async () => {
  const { code, out } = await run('compose/backends.mjs', 'start');
  expect([code, out]).toEqual([0, expect.stringMatching(/"postgres": \{\s+"state": "started"/)]);
});

it('has all data where they belong', async () => {
  expect(existsSync(join(folder, 'state/data/kafka/meta.properties'))).toBe(true);
  expect(existsSync(join(folder, 'state/data/redis'))).toBe(true);
});
