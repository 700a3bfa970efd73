import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { type KafkaNamespace, kafkaNamespace } from '../support/broker/kafka.js';
import { gatewayEnvironment } from '../support/environment.js';
import { freePort } from '../support/free-port.js';
import { removeQueueService, SHARED_PREFIX } from '../support/queue/queue-cleanup.js';
import { TOKEN_VARIABLES } from '../support/tokens.js';
import { dropSchema } from '../support/vector.js';

const run = promisify(execFile);
const NAME = 'test_connection_env';
const folder = mkdtempSync(join(tmpdir(), 'portico-test-connection-'));
const connectionFile = join(folder, 'state', 'connection.env');
let environment: NodeJS.ProcessEnv;
let kafka: KafkaNamespace;

const script = (name: string, ...args: string[]) =>
  run(process.execPath, ['compose/portico.mjs', name, ...args], { env: environment, timeout: 60_000 });

// the backends of this run are given, so the launcher starts the gateway alone
beforeAll(async () => {
  kafka = await kafkaNamespace();
  const document = {
    admin: { schema: `${NAME}_access` },
    vector: { database: { schema: `${NAME}_vector` }, indexes: [{ dimension: 3 }] },
    broker: { clusters: [{ topics: [] }] },
    queue: { schema: NAME, prefix: SHARED_PREFIX, allowedDestinations: ['127.0.0.1'] },
  };
  writeFileSync(join(folder, 'portico.yaml'), stringify(document));
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('PORTICO_'));
  const addresses = Object.entries(gatewayEnvironment()).filter(([name]) => !(name in TOKEN_VARIABLES));
  environment = {
    ...Object.fromEntries([...own, ...addresses]),
    PORTICO_TEST_RUN: process.env.PORTICO_TEST_RUN,
    PORTICO_STATE_DIR: join(folder, 'state'),
    PORTICO_HTTP_PORT: String(await freePort()),
    PORTICO_BACKENDS: 'native',
  };
  await script('start', '--detach', '--config', join(folder, 'portico.yaml'));
}, 90_000);

afterAll(async () => {
  await script('stop');
  await dropSchema(`${NAME}_vector`);
  await dropSchema(`${NAME}_access`);
  await removeQueueService(NAME);
  await kafka.dispose();
  rmSync(folder, { recursive: true });
}, 60_000);

/** Runs a program that finds all it needs in the file, as the shell of a user who has read it. */
async function withConnection(program: string, ...args: string[]): Promise<unknown> {
  const command = 'set -a; . "$0"; set +a; exec "$@"';
  const node = [process.execPath, '--input-type=module', '-e', program, ...args];
  const { stdout } = await run('/bin/sh', ['-c', command, connectionFile, ...node], {
    env: { PATH: process.env.PATH },
    timeout: 30_000,
  });
  return JSON.parse(stdout);
}

it('is for the owner alone', () => {
  expect(statSync(connectionFile).mode & 0o777).toBe(0o600);
});

it('is all that the clients of the key-value service need', async () => {
  const program = `
    import { Redis } from '@upstash/redis';
    const redis = Redis.fromEnv();
    await redis.set('${NAME}', { by: 'fromEnv' });
    const { KV_REST_API_URL: url, KV_REST_API_TOKEN: token, KV_REST_API_READ_ONLY_TOKEN: readOnly } = process.env;
    const read = await new Redis({ url, token: readOnly }).get('${NAME}');
    const refused = await new Redis({ url, token: readOnly }).del('${NAME}').catch(({ message }) => message);
    console.log(JSON.stringify({ read, refused, deleted: await new Redis({ url, token }).del('${NAME}') }));`;
  expect(await withConnection(program)).toEqual({
    read: { by: 'fromEnv' },
    refused: expect.stringContaining('NOPERM'),
    deleted: 1,
  });
});

it('is all that the client of the vector service needs', async () => {
  const program = `
    import { Index } from '@upstash/vector';
    const index = new Index();
    await index.upsert({ id: 'a', vector: [1, 2, 3] });
    const found = await index.query({ vector: [1, 2, 3], topK: 1 });
    const readOnly = new Index({ url: process.env.UPSTASH_VECTOR_REST_URL, token: process.env.UPSTASH_VECTOR_REST_READONLY_TOKEN });
    const { dimension } = await readOnly.info();
    console.log(JSON.stringify({ found, dimension }));`;
  expect(await withConnection(program)).toEqual({ found: [{ id: 'a', score: 1 }], dimension: 3 });
});

it('is all that the client of the broker needs', async () => {
  const topic = await kafka.topic('connection', 1);
  const program = `
    import { Kafka } from '@upstash/kafka';
    const { UPSTASH_KAFKA_REST_URL: url, UPSTASH_KAFKA_REST_USERNAME: username, UPSTASH_KAFKA_REST_PASSWORD: password } = process.env;
    const kafka = new Kafka({ url, username, password });
    const [topic] = process.argv.slice(1);
    await kafka.producer().produce(topic, 'hello');
    const [{ value }] = await kafka.consumer().fetch({ topic, partition: 0, offset: 0, timeout: 2000 });
    console.log(JSON.stringify(value));`;
  expect(await withConnection(program, topic)).toBe('hello');
});

it('is all that sender and receiver of the queue need', async () => {
  const program = `
    import { createServer } from 'node:http';
    import { once } from 'node:events';
    import { text } from 'node:stream/consumers';
    import { Client, Receiver } from '@upstash/qstash';
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = 'http://127.0.0.1:' + server.address().port + '/work';
    const arrived = once(server, 'request');
    await new Client().publishJSON({ url, body: { hello: 'world' } });
    const [request, response] = await arrived;
    const body = await text(request);
    const verified = await new Receiver().verify({ signature: request.headers['upstash-signature'], body, url });
    response.end();
    server.close();
    console.log(JSON.stringify({ body, verified }));`;
  expect(await withConnection(program)).toEqual({ body: '{"hello":"world"}', verified: true });
});

/** Of the file. */
function entry(name: string): string {
  const lines = readFileSync(connectionFile, 'utf8').split('\n');
  return lines.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1) ?? '';
}

it('has the token by which /metrics and the reasons of /readyz are read', async () => {
  const headers = { authorization: `Bearer ${entry('PORTICO_METRICS_TOKEN')}` };
  const url = entry('PORTICO_URL');
  expect((await fetch(`${url}/metrics`)).status).toBe(401);
  expect((await fetch(`${url}/metrics`, { headers })).status).toBe(200);
  expect(await (await fetch(`${url}/readyz/kv`, { headers })).json()).toEqual({
    status: 'up',
    services: { kv: { status: 'up', instances: { default: { status: 'up' } } } },
  });
});

it("has the administrator's token, with which tokens are made", async () => {
  const made = await fetch(`${entry('PORTICO_URL')}/admin/v1/tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${entry('PORTICO_ADMIN_TOKEN')}` },
    body: JSON.stringify({ name: 'made by the file', grants: [{ service: 'kv', access: 'read' }] }),
  });
  expect(made.status).toBe(201);
  const { token } = (await made.json()) as { token: string };
  const headers = { authorization: `Bearer ${token}` };
  expect((await fetch(`${entry('PORTICO_KV_URL')}/ping`, { headers })).status).toBe(200);
});
