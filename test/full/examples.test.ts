import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from '../support/eventually.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { queueNamespace } from '../support/queue/queue.js';
import { TOKENS } from '../support/tokens.js';

/** The examples that need a Portico and npm's registry, each by its own test script; test/docker runs the others. */
const EXAMPLES = ['cloudflare-worker', 'hono-receiver'];

const run = promisify(execFile);
const queue = queueNamespace();
let gateway: RunningGateway;
let folder: string;

jest.setTimeout(300_000);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portico-examples-'));
  gateway = await startGateway({ kv: {}, queue: queue.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await fetch(`${gateway.url}/kv`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.kv}` },
    body: '["DEL","worker:hits","worker:done"]',
  });
  await gateway.stop();
  await queue.remove();
  await rm(folder, { recursive: true, force: true });
});

it.each(EXAMPLES)('%s passes its own test', async (name) => {
  const cwd = join(folder, name);
  await cp(join('docs/examples', name), cwd, { recursive: true });
  const env = {
    ...process.env,
    UPSTASH_REDIS_REST_URL: `${gateway.url}/kv`,
    UPSTASH_REDIS_REST_TOKEN: TOKENS.kv,
    QSTASH_URL: `${gateway.url}/queue`,
    QSTASH_TOKEN: TOKENS.queue,
    QSTASH_CURRENT_SIGNING_KEY: TOKENS.currentSigningKey,
    QSTASH_NEXT_SIGNING_KEY: TOKENS.nextSigningKey,
  };
  await run('npm', ['install', '--no-audit', '--no-fund'], { cwd, env });
  const { stdout } = await run('npm', ['test'], { cwd, env, timeout: 120_000 });
  expect(stdout).toMatch(/^ok$/m);
});
