import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { kafkaNamespace } from '../support/broker/kafka.js';
import { eventually } from '../support/eventually.js';
import { removeQueueService } from '../support/queue/queue-cleanup.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';
import { dropSchema } from '../support/vector.js';

const run = promisify(execFile);
let gateway: SpawnedGateway;

beforeAll(async () => {
  gateway = await spawnGateway({
    kv: {},
    vector: { database: { schema: 'conform_vector' }, indexes: [{ dimension: 3 }] },
    broker: {},
    queue: { schema: 'conform_queue', prefix: 'conform' },
  });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway.stop();
  await dropSchema('conform_vector');
  await removeQueueService('conform_queue', 'conform');
});

const tokens: Record<string, string> = {
  kv: TOKENS.kv,
  vector: TOKENS.vector,
  broker: `${TOKENS.username}:${TOKENS.password}`,
  queue: TOKENS.queue,
};

/** The command, as users call it. */
const portico = (...args: string[]) =>
  run(process.execPath, ['compose/portico.mjs', 'conform', ...args]).then(
    ({ stdout }) => ({ code: 0, out: stdout }),
    ({ code, stdout, stderr }) => ({ code, out: `${stdout}${stderr}` }),
  );

test.each(['kv', 'vector', 'broker', 'queue'])('%s does what its contract says', async (service) => {
  const kafka = service === 'broker' ? await kafkaNamespace() : undefined;
  const topic = kafka === undefined ? [] : ['--topic', await kafka.topic('conform', 2)];
  const about = ['--service', service, '--url', `${gateway.url}/${service}`];
  const { code, out } = await portico(...about, '--token', tokens[service] as string, ...topic);
  await kafka?.dispose();
  expect(out.split('\n').filter((line) => /DIFFERS|expected/.test(line))).toEqual([]);
  expect(out).toMatch(/^(\d+) of \1 are as the contract says$/m);
  expect(code).toBe(0);
});

test('the command shows two servers side by side, and leaves nothing behind', async () => {
  // it says that all is well, whatever it is told
  const other = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json').end('{"result":"OK"}');
  }).listen(0, '127.0.0.1');
  await once(other, 'listening');
  const url = `${gateway.url}/kv`;
  const size = async () => {
    const headers = { authorization: `Bearer ${TOKENS.kv}` };
    const keys = (await (await fetch(`${url}/keys/conform-*`, { headers })).json()) as { result: string[] };
    return keys.result;
  };
  const against = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const { code, out } = await portico(
    ...['--service', 'kv', '--url', url, '--token', TOKENS.kv, '--against', against, '--token2', 'any'],
  );
  other.close();
  expect(code).toBe(1);
  expect(out).toMatch(/without a valid token nothing is done: 401 +same +DIFFERS +Authentication/);
  expect(out).toMatch(/B: GET \/set\/.*|B: POST \/: expected/);
  expect(out).toMatch(/A: (\d+) of \1 are as the contract says/);
  expect(out).not.toContain(TOKENS.kv);
  expect(await size()).toEqual([]);
});

test('the command says in one sentence what it lacks, or that nobody is there', async () => {
  expect(await portico('--service', 'none')).toEqual({
    code: 1,
    out: '--service takes one of kv, vector, broker, queue\n',
  });
  expect((await portico('--service', 'broker', '--url', 'http://127.0.0.1:1', '--token', 'a:b')).out).toBe(
    'conform needs --topic\n',
  );
  const nobody = await portico('--service', 'vector', '--url', 'http://127.0.0.1:1', '--token', 'x');
  expect(nobody).toEqual({
    code: 1,
    out: expect.stringMatching(/cannot be checked: GET \/info: fetch failed/),
  });
});
