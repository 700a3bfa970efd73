import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { queueNamespace } from '../support/queue/queue.js';
import { TOKENS } from '../support/tokens.js';

/** Workflows of the Python SDK, with FastAPI. Needs python3 with venv and pip, and the registry of packages. */
const run = promisify(execFile);
const PACKAGES = ['upstash-workflow==2.0.0', 'fastapi', 'uvicorn'];

const namespace = queueNamespace({ maxRetries: 5 });
let gateway: RunningGateway;
let folder: string;
let app: ChildProcess;
let url: string;
const lines: string[] = [];

jest.setTimeout(300_000);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portico-python-'));
  await run('python3', ['-m', 'venv', folder]);
  await run(join(folder, 'bin/pip'), ['install', '--quiet', ...PACKAGES]);
  gateway = await startGateway({ queue: namespace.config });
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  app = spawn(join(folder, 'bin/python'), ['test/full/queue_workflow_app.py'], {
    env: {
      PATH: process.env.PATH,
      APP_PORT: String(port),
      QSTASH_URL: `${gateway.url}/queue`,
      QSTASH_TOKEN: TOKENS.queue,
      QSTASH_CURRENT_SIGNING_KEY: TOKENS.currentSigningKey,
      QSTASH_NEXT_SIGNING_KEY: TOKENS.nextSigningKey,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface({ input: app.stdout as NodeJS.ReadableStream }).on('line', (line) => lines.push(line));
  await eventually(async () => expect((await fetch(`${url}/plain`, { method: 'POST' })).status).toBe(200));
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  app?.kill('SIGKILL');
  await gateway?.stop();
  await namespace.remove();
  await rm(folder, { recursive: true, force: true });
});

/** As anybody publishes a message: to an endpoint with the SDK that is the start of a run. */
async function publish(path: string, body: string): Promise<void> {
  const reply = await fetch(`${gateway.url}/queue/v2/publish/${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}` },
    body,
  });
  expect(reply.status).toBe(200);
}

/** How the runs at a URL ended. */
const endsOf = (path: string) =>
  eventually(async () => {
    const rows = await namespace.query<{ state: string }>(
      'select state from $schema.workflow_runs where url = $1 and ended_at is not null',
      [url + path],
    );
    expect(rows).not.toEqual([]);
    return rows.map(({ state }) => state);
  });

it('runs steps, a sleep and a call, each once', async () => {
  await publish('/steps', 'hello');
  expect(await endsOf('/steps')).toEqual(['RUN_SUCCESS']);
  expect(lines.filter((line) => /^(first|second|third)/.test(line))).toEqual([
    'first hello',
    'second one',
    "third 2 200 {'tea': True}",
  ]);
});

it('calls the failure function once, and starts no run by that', async () => {
  await publish('/fails', 'payload');
  expect(await endsOf('/fails')).toEqual(['RUN_FAILED']);
  await eventually(() => expect(lines.filter((line) => line.startsWith('failure'))).not.toEqual([]));
  await eventually(async () => {
    const [again] = await namespace.query<{ failure: { callback: { state: string } } }>(
      "select failure from $schema.workflow_runs where state = 'RUN_FAILED'",
    );
    expect(again?.failure.callback.state).toBe('CALLBACK_SUCCESS');
  });
  expect(lines.filter((line) => /^(bad|failure)/.test(line))).toEqual(['bad', 'failure 500 payload']);
  expect(await endsOf('/fails')).toEqual(['RUN_FAILED']);
});
