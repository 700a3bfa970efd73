import { services } from '../../../src/services/index.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { queueNamespace } from '../../support/queue/queue.js';
import { dropSchema } from '../../support/vector.js';

const SCHEMA = 'test_reload';
const namespace = queueNamespace();
const OLD = 'an-old-token-0123456789';
const NEW = 'a-new-token-0123456789';
const READER = 'a-reader-token-0123456789';
let gateway: RunningGateway;

type Document = Record<string, unknown>;
type User = Record<string, unknown>;

const apart = Object.fromEntries(services.map(({ name, probe }) => [name, probe.apart]));

/** @param others beside the tokens */
function document(token: string, users: readonly User[], others: Document = {}): Document {
  const readOnlyToken = token === OLD ? null : READER;
  return {
    http: { metricsToken: token },
    ...apart,
    kv: { databases: [{ token, readOnlyToken }] },
    vector: { database: { schema: SCHEMA }, indexes: [{ dimension: 2, token, readOnlyToken }] },
    broker: { clusters: [{ users }] },
    queue: { ...namespace.config, token, readOnlyToken },
    ...others,
  };
}

const first = { username: 'first', password: OLD };
const user = { ...first, password: NEW };
const environment = Object.fromEntries(
  services.flatMap(({ card }) => card.credentials.map(({ variable }) => [variable, ''])),
);
const keys = { PORTICO_QUEUE_CURRENT_SIGNING_KEY: 'sig_a', PORTICO_QUEUE_NEXT_SIGNING_KEY: 'sig_b' };

beforeAll(async () => {
  gateway = await startGateway(document(OLD, [first]), { ...environment, ...keys });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway?.stop();
  await namespace.remove();
  await dropSchema(SCHEMA);
});

const PATHS = {
  kv: '/kv/ping',
  vector: '/vector/info',
  queue: '/queue/v2/queues',
  metrics: '/metrics',
} as const;

async function statusOf(path: string, authorization: string): Promise<number> {
  const reply = await fetch(gateway.url + path, { headers: { authorization } });
  await reply.text();
  return reply.status;
}
const bearer = async (token: string) =>
  Object.fromEntries(
    await Promise.all(
      Object.entries(PATHS).map(async ([name, path]) => [name, await statusOf(path, `Bearer ${token}`)]),
    ),
  );
const basic = (username: string, password: string, path = '/broker/topics') =>
  statusOf(path, `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`);

const all = (status: number) => ({ kv: status, vector: status, queue: status, metrics: status });

it('a changed token of any service is taken, and the one before no longer', async () => {
  expect([await bearer(OLD), await bearer(NEW), await bearer(READER)]).toEqual([
    all(200),
    all(401),
    all(401),
  ]);
  const { changed, atRestart } = gateway.reload(document(NEW, [first]));
  expect(atRestart).toEqual([]);
  expect([...changed].sort()).toEqual([
    'http.metricsToken',
    'kv.databases[0].readOnlyToken',
    'kv.databases[0].token',
    'queue.readOnlyToken',
    'queue.token',
    'vector.indexes[0].readOnlyToken',
    'vector.indexes[0].token',
  ]);
  expect([await bearer(OLD), await bearer(NEW)]).toEqual([all(401), all(200)]);
  expect(await bearer(READER)).toEqual({ ...all(200), metrics: 401 });
});

it('users of the broker come, go and get other topics', async () => {
  expect([await basic('first', OLD), await basic('second', NEW)]).toEqual([200, 401]);
  const second = { username: 'second', password: NEW, topicPattern: 'mine-*' };
  gateway.reload(document(NEW, [user, second]));
  expect([await basic('first', OLD), await basic('first', NEW), await basic('second', NEW)]).toEqual([
    401, 200, 200,
  ]);
  expect(await basic('second', NEW, '/broker/produce/others/x')).toBe(403);
  gateway.reload(document(NEW, [user]));
  expect(await basic('second', NEW)).toBe(401);
});

it('what cannot be exchanged is named and stays, and so are the tokens beside another name', async () => {
  const others = {
    http: { metricsToken: NEW, maxInFlight: 3 },
    kv: { databases: [{ name: 'other', token: OLD, readOnlyToken: READER }] },
  };
  const { changed, atRestart } = gateway.reload(document(NEW, [user], others));
  expect(changed).toEqual([]);
  expect([...atRestart].sort()).toEqual(['http.maxInFlight', 'kv.databases']);
  expect(await bearer(NEW)).toEqual(all(200));
});

it('one that is wrong changes nothing', async () => {
  const wrong = { http: { metricsToken: OLD }, kv: { databases: [{ token: OLD, path: 'kv' }] } };
  expect(() => gateway.reload(document(OLD, [user], wrong))).toThrow(/kv\.databases\[0\]\.path/);
  const index = { dimension: 2, token: null };
  const without = { vector: { database: { schema: SCHEMA }, indexes: [index] } };
  expect(() => gateway.reload(document(OLD, [user], without))).toThrow(/a token is missing/);
  expect([await bearer(OLD), await bearer(NEW)]).toEqual([all(401), all(200)]);
});
