import { kafkaNamespace } from '../support/broker/kafka.js';
import { eventually } from '../support/eventually.js';
import { removeQueueService, SHARED_PREFIX } from '../support/queue/queue-cleanup.js';
import { startRelays } from '../support/relayed-backends.js';
import { spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';
import { dropSchema } from '../support/vector.js';

const NAME = 'test_late_backends';
const BASIC = `Basic ${Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64')}`;

it('two processes without a backend at the start serve all of them when they come', async () => {
  const kafka = await kafkaNamespace();
  const relays = await startRelays();
  const topic = kafka.name('declared');
  const document = {
    http: { workers: 2 },
    kv: {},
    vector: { database: { schema: `${NAME}_vector` }, indexes: [{ dimension: 3 }] },
    broker: { clusters: [{ topics: [`${topic}:2`] }] },
    queue: { schema: NAME, prefix: SHARED_PREFIX },
  };
  const gateway = await spawnGateway(document, relays.addresses);
  const send = async (path: string, authorization: string, body?: unknown) => {
    const method = body === undefined ? 'GET' : 'POST';
    // a connection each, so that both processes are asked
    const headers = { authorization, connection: 'close' };
    const reply = await fetch(`${gateway.url}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: reply.status, process: reply.headers.get('x-request-id')?.split('-')[0] as string };
  };
  const requests = [
    () => send('/kv', `Bearer ${TOKENS.kv}`, ['PING']),
    () => send('/vector/info', `Bearer ${TOKENS.vector}`),
    () => send(`/broker/produce/${topic}`, BASIC, { value: 'x', partition: 1 }),
    () => send('/queue/v2/queues', `Bearer ${TOKENS.queue}`),
    () => send('/readyz', ''),
  ];
  for (const request of requests) expect((await request()).status).toBe(503);
  relays.open();
  for (const request of requests) {
    const processes = new Set<string>();
    await eventually(async () => {
      const { status, process } = await request();
      if (status === 200) processes.add(process);
      expect(processes.size).toBe(2);
    }, 30_000);
  }
  expect(await gateway.stop()).toBe(0);
  await relays.stop();
  await dropSchema(`${NAME}_vector`);
  await removeQueueService(NAME);
  await kafka.dispose();
}, 120_000);
