import { adminCaller, type Made, makeToken, type StorePlace, storePlace } from '../../support/admin.js';
import { brokerClient, kafkaNamespace } from '../../support/broker/kafka.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { spawnGateway } from '../../support/spawned-gateway.js';
import { TOKENS } from '../../support/tokens.js';

let place: StorePlace;
beforeEach(() => {
  place = storePlace('redis', async () => '');
});
afterEach(() => place.remove());

test('of the broker: topics, permission and groups of its own', async () => {
  const kafka = await kafkaNamespace();
  const gateway = await startGateway({ broker: {}, admin: place.settings });
  const call = adminCaller(gateway.url);
  await eventually(async () => expect((await call('GET', '/tokens')).status).toBe(200));
  const [own, other] = [await kafka.topic('own', 1), await kafka.topic('other', 1)];
  const make = (permissions: object, access = 'full') =>
    makeToken(call, { grants: [{ service: 'broker', access, permissions }] });
  const as = ({ id, token }: Made) => brokerClient(gateway.url, { username: id, password: token });
  const writer = await make({ topicPattern: own, permission: 'produce' });
  const both = await make({ topicPattern: own });
  const reader = await make({ topicPattern: own }, 'read');

  expect((await as(writer)(`/produce/${own}`, { value: 'one' })).status).toBe(200);
  expect((await as(writer)(`/produce/${other}`, { value: 'one' })).status).toBe(403);
  expect((await as(writer)('/fetch', { topic: own, partition: 0, offset: 0 })).status).toBe(403);
  expect((await as(writer)(`/topics/${own}`, undefined, { method: 'DELETE' })).status).toBe(403);
  expect((await as(reader)('/fetch', { topic: own, partition: 0, offset: 0 })).status).toBe(200);
  expect((await as(reader)(`/produce/${own}`, { value: 'x' })).status).toBe(403);
  expect((await as(reader)(`/webhook?topic=${own}`, 'x')).status).toBe(403);
  // the password of one with the name of another
  expect((await as({ ...writer, id: both.id })(`/produce/${own}`, { value: 'x' })).status).toBe(401);

  const consume = { topic: own, timeout: 20_000 };
  const headers = { 'broker-auto-offset-reset': 'earliest' };
  const consumed = await as(both)('/consume/group/instance', consume, { headers });
  expect(consumed.body).toMatchObject([{ value: 'one' }]);
  // the same name is another group for everybody else, and the first user's groups do not reach it
  const user = brokerClient(gateway.url, { username: TOKENS.username, password: TOKENS.password });
  expect((await user('/consumers')).body).toEqual([]);
  expect((await user(`/lag/portico-token:${both.id}:group`)).status).toBe(403);
  expect((await as(both)('/consumers')).body).toMatchObject([{ name: 'group' }]);

  await gateway.stop();
  await kafka.dispose();
});

test('every worker takes a token that one has made, and none after it was revoked', async () => {
  const gateway = await spawnGateway({ kv: {}, http: { workers: 2 }, admin: place.settings });
  const call = adminCaller(gateway.url);
  await eventually(async () => expect((await call('GET', '/tokens')).status).toBe(200));
  const { id, token } = await makeToken(call, { grants: [{ service: 'kv' }] });
  const workers = new Set<string>();
  /** Of a connection of its own, which either worker may take. */
  const ask = async () => {
    const reply = await fetch(`${gateway.url}/kv/ping`, {
      headers: { authorization: `Bearer ${token}`, connection: 'close' },
    });
    await reply.text();
    workers.add(String(reply.headers.get('x-request-id')).split('-')[0] as string);
    return reply.status;
  };
  const statuses = async () => new Set(await Promise.all(Array.from({ length: 20 }, ask)));
  await eventually(async () => {
    expect(await statuses()).toEqual(new Set([200]));
    expect(workers.size).toBe(2);
  }, PROMPT_MS);
  await call('DELETE', `/tokens/${id}`);
  await eventually(async () => expect(await statuses()).toEqual(new Set([401])), PROMPT_MS);
  await eventually(() =>
    expect(gateway.lines.filter((line) => line.includes('"msg":"audit"'))).toHaveLength(2),
  );
  const log = gateway.lines.join('\n');
  expect(log).toContain(id);
  expect(log).not.toContain(token);
  expect(await gateway.stop()).toBe(0);
});
