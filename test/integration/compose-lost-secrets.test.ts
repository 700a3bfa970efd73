import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePortBlock } from '../support/free-port.js';

/** A secrets.env that was edited or cut off, in a folder of this file's own. */
const names = ['redis', 'postgres', 'rabbitmq'];
const passwords = /^PORTICO_(REDIS|POSTGRES|POSTGRES_ADMIN|RABBITMQ)_PASSWORD=.*\n/gm;
/** An answer that comes at once, where waiting would be 90 s; the programs themselves take their time on a busy machine. */
const AT_ONCE_MS = 45_000;

let folder: string;
let environment: NodeJS.ProcessEnv;
const file = () => join(folder, 'secrets.env');
const secrets = () => readFileSync(file(), 'utf8');

function backends(...args: string[]): Promise<{ code: number; out: string }> {
  return new Promise((resolve) => {
    const options = { env: environment, timeout: 180_000 };
    execFile(process.execPath, ['compose/backends.mjs', ...args], options, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out: err + out });
    });
  });
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portico-test-secrets-'));
  mkdirSync(folder, { recursive: true });
  const [programs = ''] = (process.env.PORTICO_TEST_REDIS_NEWEST ?? '').split(/\/redis-[^/]+\/usr\/bin\//);
  symlinkSync(programs, join(folder, 'programs'));
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('PORTICO_') || name === 'PORTICO_TEST_RUN',
  );
  environment = {
    ...Object.fromEntries(inherited),
    PORTICO_STATE_DIR: folder,
    PORTICO_PORT_BASE: String(await freePortBlock()),
    PORTICO_BACKENDS: 'native',
  };
  expect((await backends('start', ...names)).code).toBe(0);
});

afterAll(async () => {
  await backends('stop');
  rmSync(folder, { recursive: true, force: true });
});

it('is said at once in one sentence while what it tells of runs, and stays as it is', async () => {
  const whole = secrets();
  const cut = whole.replace(passwords, '');
  writeFileSync(file(), cut);
  const { code, out } = await backends('start', ...names);
  expect(code).toBe(1);
  expect(out).toMatch(
    /^.*secrets\.env has lost PORTICO_REDIS_PASSWORD, .*PORTICO_RABBITMQ_PASSWORD of what runs: put back .*npm stop.*\n$/,
  );
  expect(secrets()).toBe(cut);
  writeFileSync(file(), whole);
  expect((await backends('start', ...names)).code).toBe(0);
});

it('with other passwords than what runs has is said of each backend, at once', async () => {
  const whole = secrets();
  writeFileSync(
    file(),
    whole.replace(passwords, (line) => line.replace(/=.*/, '=another')),
  );
  const begin = Date.now();
  const { code, out } = await backends('start', ...names);
  expect(Date.now() - begin).toBeLessThan(AT_ONCE_MS);
  expect(code).toBe(1);
  for (const name of names) expect(out).toMatch(new RegExp(`${name} refuses the password of .*npm stop`));
  writeFileSync(file(), whole);
  expect((await backends('start', ...names)).code).toBe(0);
});

it('gets new passwords when nothing runs, which the data of earlier take', async () => {
  await backends('stop');
  writeFileSync(file(), secrets().replace(passwords, ''));
  const { code, out } = await backends('start', ...names);
  expect([code, out]).toEqual([0, expect.stringMatching(/"postgres": \{\s+"state": "started"/)]);
  expect(secrets().match(passwords)).toHaveLength(4);
});
