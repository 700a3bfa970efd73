import { type StorePlace, storePlace } from '../../support/admin.js';
import { brokerClient, type KafkaNamespace, kafkaNamespace } from '../../support/broker/kafka.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';

let kafka: KafkaNamespace;
beforeAll(async () => {
  kafka = await kafkaNamespace();
});
afterAll(() => kafka.dispose());

const start = (place: StorePlace) => {
  // without an administrator: the place is that of tokens all the same
  const { token: _, ...admin } = place.settings;
  return startGateway({ broker: {}, admin });
};

const ask = ({ url }: RunningGateway, key: string, path: string, body: unknown) =>
  brokerClient(url)(path, body, { headers: { 'idempotency-key': key } });

test.each(['postgres', 'redis'] as const)('records with the same key are written once (%s)', async (kind) => {
  const place = storePlace(kind, async () => '');
  const gateways = await Promise.all([start(place), start(place)]);
  const [one, other] = gateways as [RunningGateway, RunningGateway];
  const topic = await kafka.topic(`once-${kind}`, 1);
  const first = await ask(one, 'key', '/produce', [{ topic, value: 'a' }]);
  expect(first.status).toBe(200);
  for (const gateway of gateways)
    expect((await ask(gateway, 'key', '/produce', [{ topic, value: 'a' }])).body).toEqual(first.body);
  expect((await ask(other, 'key', '/produce', [{ topic, value: 'b' }])).status).toBe(422);
  const hook = await ask(one, 'hook', `/webhook?topic=${topic}`, 'b');
  expect((await ask(other, 'hook', `/webhook?topic=${topic}`, 'b')).body).toEqual(hook.body);
  const path = await ask(one, 'path', `/produce/${topic}/c`, undefined);
  expect((await ask(other, 'path', `/produce/${topic}/c`, undefined)).body).toEqual(path.body);
  const { body } = await brokerClient(one.url)('/offsets/latest', { topic, partition: 0 });
  expect(body).toEqual([{ topic, partition: 0, offset: 3 }]);
  // nothing was written, so it may be sent again
  const later = `${topic}-later`;
  expect((await ask(one, 'later', '/produce', [{ topic: later, value: 'a' }])).status).toBe(404);
  await kafka.exactTopic(later);
  expect((await ask(other, 'later', '/produce', [{ topic: later, value: 'a' }])).status).toBe(200);
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await place.remove();
});

test('without a place for replies a key is refused, and nothing is written', async () => {
  const gateway = await startGateway({ broker: {} });
  const topic = await kafka.topic('without', 1);
  expect((await ask(gateway, 'key', '/produce', [{ topic, value: 'a' }])).status).toBe(412);
  const { body } = await brokerClient(gateway.url)('/offsets/latest', { topic, partition: 0 });
  expect(body).toEqual([{ topic, partition: 0, offset: 0 }]);
  await gateway.stop();
});
