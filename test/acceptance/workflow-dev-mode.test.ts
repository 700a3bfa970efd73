import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { removeQueueService, SHARED_PREFIX } from '../support/queue/queue-cleanup.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';

/** What `@upstash/qstash` 2.12 expects of a server for development. */
const DEV = {
  token: 'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=',
  current: 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r',
  next: 'sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs',
};
const NAME = 'test_workflow_dev_mode';

let gateway: SpawnedGateway;
let port: number;

beforeAll(async () => {
  port = await freePort();
  const queue = { port, devMode: true, prefix: SHARED_PREFIX, schema: NAME };
  // the tests' own, which would hold beside it
  const none = {
    PORTICO_QUEUE_TOKEN: '',
    PORTICO_QUEUE_CURRENT_SIGNING_KEY: '',
    PORTICO_QUEUE_NEXT_SIGNING_KEY: '',
  };
  gateway = await spawnGateway({ queue }, none);
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  expect(await gateway?.stop()).toBe(0);
  await removeQueueService(NAME);
});

it('an application with QSTASH_DEV finds Portico, and needs nothing else', async () => {
  // the SDK would download a server if this one were not the one that it looks for
  const keys = await fetch(`http://127.0.0.1:${port}/v2/keys`, {
    headers: { authorization: `Bearer ${DEV.token}` },
  });
  expect(await keys.json()).toEqual({
    current: DEV.current,
    next: DEV.next,
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
