import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Compose itself, which needs no engine to read a file. */
const compose = process.env.PORTICO_TEST_COMPOSE ?? '';

const files = ['compose', 'docs/examples'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(^|\/)(compose|docker-compose|e2e)[\w.-]*\.ya?ml$/.test(name))
    .map((name) => join(folder, name)),
);

describe('every compose file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portico-test-'));
  let secrets = '';

  beforeAll(async () => {
    const env = { ...process.env, PORTICO_STATE_DIR: folder };
    secrets = (await run(process.execPath, ['compose/secrets.mjs'], { env })).stdout.trim();
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it('is looked for where they are', () => {
    expect(files).toContain('compose/compose.yaml');
  });

  it.each(files)('%s is valid with nothing but secrets.env', async (file) => {
    const args = ['--env-file', secrets, '-f', file, 'config', '--format', 'json'];
    const { stdout } = await run(compose, args, { env: { PATH: process.env.PATH, HOME: folder } });
    const { services } = JSON.parse(stdout) as { services: Record<string, unknown> };
    expect(Object.keys(services)).toContain('portico');
  });
});
