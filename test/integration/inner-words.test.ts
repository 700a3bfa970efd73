import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { services } from '../../src/services/index.js';
import { backendAddress } from '../support/environment.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { removeQueueService, SHARED_PREFIX } from '../support/queue/queue-cleanup.js';
import { authorizationOf, TOKENS } from '../support/tokens.js';

jest.setTimeout(60_000);

const NAME = 'test_inner_words';
const BASIC = `Basic ${Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64')}`;
const REASON =
  'rabbitmq-server=3.10 is not at http://mirror.example/debian; see /root/.portico (process 4711)';

/** Requests of each service that a client might send, by method and path, each with a body. */
const REQUESTS: Readonly<Record<string, { authorization: string; calls: [string, string, unknown?][] }>> = {
  kv: {
    authorization: `Bearer ${TOKENS.kv}`,
    calls: [
      ['GET', '/kv/get/key'],
      ['POST', '/kv', ['SET', 'key', 'value']],
      ['POST', '/kv/pipeline', [['GET', 'key']]],
      ['POST', '/kv/multi-exec', [['GET', 'key']]],
      ['GET', '/kv/subscribe/channel'],
      ['POST', '/kv', ['XREAD', 'BLOCK', '10', 'STREAMS', 'key', '$']],
    ],
  },
  vector: {
    authorization: `Bearer ${TOKENS.vector}`,
    calls: [
      ['GET', '/vector/info'],
      ['POST', '/vector/upsert', { id: 'a', vector: [1, 2, 3] }],
      ['POST', '/vector/query', { vector: [1, 2, 3] }],
      ['POST', '/vector/range', { cursor: '0', limit: 1 }],
      ['POST', '/vector/resumable-query', { vector: [1, 2, 3], topK: 1 }],
      ['DELETE', '/vector/reset'],
    ],
  },
  broker: {
    authorization: BASIC,
    calls: [
      ['GET', '/broker/topics'],
      ['GET', '/broker/consumers'],
      ['POST', '/broker/produce/topic', { value: 'x' }],
      ['POST', '/broker/fetch', { topic: 'topic', partition: 0 }],
      ['GET', '/broker/consume/group/instance/topic?timeout=500'],
      ['POST', '/broker/committed/group/instance', [{ topic: 'topic', partition: 0 }]],
      ['POST', '/broker/offsets/latest', [{ topic: 'topic', partition: 0 }]],
    ],
  },
  queue: {
    authorization: `Bearer ${TOKENS.queue}`,
    calls: [
      ['POST', '/queue/v2/publish/https://example.invalid/', { a: 1 }],
      ['POST', '/queue/v2/batch', [{ destination: 'https://example.invalid/', body: 'x' }]],
      ['GET', '/queue/v2/messages/msg_1'],
      ['GET', '/queue/v2/events'],
      ['GET', '/queue/v2/dlq'],
      ['GET', '/queue/v2/queues'],
      ['GET', '/queue/v2/schedules'],
      ['GET', '/queue/v2/keys'],
    ],
  },
};

/** The request of a service that is not listed. */
function probeOf(name: string): (typeof REQUESTS)[string] {
  const service = services.find((other) => other.name === name);
  if (service === undefined) throw new Error(`no service ${name}`);
  const { method, path, body } = service.probe.request;
  return { authorization: authorizationOf(service), calls: [[method, `/${name}${path}`, body]] };
}

const NOWHERE = {
  PORTICO_REDIS_URL: 'redis://someone:secret-word@127.0.0.1:1/0',
  PORTICO_DATABASE_URL: 'postgres://someone:secret-word@127.0.0.1:1/database-name',
  PORTICO_KAFKA_BROKERS: '127.0.0.1:1',
  PORTICO_RABBITMQ_URL: 'amqp://someone:secret-word@127.0.0.1:1/',
};

/** What a client must never read: addresses, ports, files, processes, packages, words of drivers, secrets. */
const INNER = new RegExp(
  [
    /127\.0\.0\.1|localhost|\[::1\]|mirror|debian|package|=3\.10/,
    /E(CONN|PIPE|TIMEDOUT|NOTFOUND|HOST|NOENT)|getaddrinfo|socket|handshake|SASL|SCRAM|ACCESS[-_]REFUSED/,
    /ioredis|kafkajs|amqplib|node_modules|pgvector|relation |password|someone|secret-word|database-name/,
    /\/(root|work|tmp|usr|home|var)\/|\.portico|\bprocess\b|\bpid\b|\bat .*:\d+:\d+/,
    /:\d{2,5}\b(?!\d*[,}])/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

interface Answer {
  readonly call: string;
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | null;
}

async function askAll(gateway: RunningGateway, service: string): Promise<Answer[]> {
  const { authorization, calls } = REQUESTS[service] ?? probeOf(service);
  const open = ['/livez', '/readyz', `/readyz/${service}`, '/nowhere', `/${service}`].map((path) => [
    'GET',
    path,
  ]);
  const ask = async ([method = '', path = '', body]: readonly unknown[], headers: Record<string, string>) => {
    const reply = await fetch(`${gateway.url}${path}`, {
      method: method as string,
      headers,
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    });
    const { status } = reply;
    const all = [...reply.headers].filter(([name]) => name !== 'date' && name !== 'x-request-id');
    const text = `${await reply.text()}\n${all.map(([name, value]) => `${name}=${value}`).join('\n')}`;
    return { call: `${method} ${path}`, status, text, retryAfter: reply.headers.get('retry-after') };
  };
  const told = await Promise.all([
    ...calls.map((call) => ask(call, { authorization })),
    ...open.map((call) => ask(call, {})),
  ]);
  return told;
}

async function expectNoInnerWord(
  service: string,
  addresses: Readonly<Record<string, string>>,
  statuses: readonly number[] = [503],
): Promise<void> {
  const section: Record<string, unknown> = { missing: REASON };
  if (service === 'vector')
    Object.assign(section, { database: { schema: `${NAME}_vector` }, indexes: [{ dimension: 3 }] });
  if (service === 'queue') Object.assign(section, { schema: NAME, prefix: SHARED_PREFIX });
  const gateway = await startGateway({ [service]: section }, addresses);
  try {
    const answers = await askAll(gateway, service);
    for (const { call, status, text, retryAfter } of answers) {
      expect({ call, found: INNER.exec(text)?.[0], text }).toEqual({ call, found: undefined, text });
      if (status === 503)
        expect({ call, retryAfter }).toEqual({ call, retryAfter: expect.stringMatching(/^\d+$/) });
    }
    const failed = answers.filter(({ call, status }) => status >= 500 && !call.includes('/readyz'));
    expect(failed.length).toBeGreaterThan(1);
    for (const { call, status } of failed)
      expect({ call, status: statuses.includes(status) }).toEqual({ call, status: true });
  } finally {
    await gateway.stop();
  }
}

afterAll(() => removeQueueService(NAME));

const ALL = services.filter(({ card }) => card.needs.length > 0).map(({ name }) => name);

it.each(ALL)('%s: nothing listens where its backend should be', async (service) => {
  await expectNoInnerWord(service, NOWHERE);
});

it.each(ALL)('%s: its backend accepts connections and says nothing', async (service) => {
  const sockets: Socket[] = [];
  const silent: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as AddressInfo;
  const addresses = Object.entries(NOWHERE).map(([name, address]) => [
    name,
    address.replace(':1', `:${port}`),
  ]);
  try {
    await expectNoInnerWord(service, Object.fromEntries(addresses), [503, 504]);
  } finally {
    for (const socket of sockets) socket.destroy();
    silent.close();
  }
});

it.each(ALL.filter((name) => name !== 'broker'))('%s: its backend refuses the login', async (service) => {
  const addresses = Object.keys(NOWHERE).map((name) => {
    const address = backendAddress(name as keyof typeof NOWHERE);
    return [name, address.replace(/:[^:@/]+@/, ':secret-word@')];
  });
  await expectNoInnerWord(service, Object.fromEntries(addresses));
});

it.each(['vector', 'queue'])('%s: there is no such database', async (service) => {
  const url = new URL(backendAddress('PORTICO_DATABASE_URL'));
  url.pathname = '/database-name';
  await expectNoInnerWord(service, { PORTICO_DATABASE_URL: url.href });
});

it('queue: either of its backends is enough to be missing', async () => {
  const { PORTICO_DATABASE_URL, PORTICO_RABBITMQ_URL } = NOWHERE;
  await expectNoInnerWord('queue', { PORTICO_DATABASE_URL });
  await expectNoInnerWord('queue', { PORTICO_RABBITMQ_URL });
});
