import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { removeQueueService, SHARED_PREFIX } from '../support/queue/queue-cleanup.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';

/** What `@upstash/qstash` 2.12 expects of a server for development; docs/workflow.md has the same. */
const DEV = {
  PORTICO_QUEUE_TOKEN: 'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=',
  PORTICO_QUEUE_CURRENT_SIGNING_KEY: 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r',
  PORTICO_QUEUE_NEXT_SIGNING_KEY: 'sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs',
};
const NAME = 'test_workflow_dev_mode';

let gateway: SpawnedGateway;
let port: number;

beforeAll(async () => {
  port = await freePort();
  const queue = { port, allowedDestinations: ['localhost'], prefix: SHARED_PREFIX, schema: NAME };
  gateway = await spawnGateway({ queue }, DEV);
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  expect(await gateway?.stop()).toBe(0);
  await removeQueueService(NAME);
});

it('an application with QSTASH_DEV finds Portico, and needs nothing else', async () => {
  // the SDK would download a server if this one were not the one that it looks for
  const keys = await fetch(`http://127.0.0.1:${port}/v2/keys`, {
    headers: { authorization: `Bearer ${DEV.PORTICO_QUEUE_TOKEN}` },
  });
  expect(await keys.json()).toEqual({
    current: DEV.PORTICO_QUEUE_CURRENT_SIGNING_KEY,
    next: DEV.PORTICO_QUEUE_NEXT_SIGNING_KEY,
  });
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['test/support/queue/workflow-dev-app.mjs'],
    { env: { PATH: process.env.PATH, QSTASH_DEV: 'true', QSTASH_DEV_PORT: String(port) } },
  );
  const lines = stdout.trim().split('\n');
  expect(lines.join('\n')).toContain('Server already running');
  expect(JSON.parse(lines.at(-1) as string)).toEqual({
    workflowState: 'RUN_SUCCESS',
    workflowRunResponse: '"hello Ada and me"',
    // signatures are verified: nobody else can call the endpoint
    strangerGets: 500,
  });
});
