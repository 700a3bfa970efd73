import { brokerClient } from '../../support/broker/kafka.js';
import { DISTANT_MS, type SecureKafka, startSecureKafka } from '../../support/broker/kafka-server.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';

let kafka: SecureKafka;

beforeAll(async () => {
  kafka = await startSecureKafka();
});

afterAll(() => kafka.stop());

async function withGateway<T>(
  cluster: object,
  use: (call: ReturnType<typeof brokerClient>, url: string) => Promise<T>,
  address = kafka.address,
): Promise<T> {
  const environment = { PORTICO_KAFKA_BROKERS: address };
  const document = { http: { metricsToken: TOKENS.metrics }, broker: { clusters: [cluster] } };
  const gateway = await startGateway(document, environment);
  try {
    return await use(brokerClient(gateway.url), gateway.url);
  } finally {
    await gateway.stop();
  }
}

test.each(['plain', 'scram-sha-256', 'scram-sha-512'] as const)(
  '%s over TLS: topics are made, records written and consumed',
  async (mechanism) => {
    const { username, password, ca } = kafka;
    const topic = `over-${mechanism}`;
    const cluster = { tls: { enabled: true, ca }, sasl: { mechanism, username, password }, topics: [topic] };
    await withGateway(cluster, async (call, url) => {
      await eventually(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
      expect((await call(`/produce/${topic}`, { value: mechanism })).status).toBe(200);
      const headers = { 'Kafka-Auto-Offset-Reset': 'earliest' };
      const { body } = await call(`/consume/g/i/${topic}?timeout=30000`, undefined, { headers });
      expect(body.map(({ value }) => value)).toEqual([mechanism]);
      expect((await call('/commit/g/i', undefined, { method: 'POST' })).status).toBe(200);
    });
  },
);

test.each([
  [
    'a wrong password',
    () => ({
      tls: { enabled: true, ca: kafka.ca },
      sasl: { mechanism: 'plain', username: kafka.username, password: 'wrong-one' },
    }),
    "Kafka refuses the gateway's SASL mechanism, user or password (broker.clusters[].sasl)",
  ],
  [
    'another wrong password',
    () => ({
      tls: { enabled: true, ca: kafka.ca },
      sasl: { mechanism: 'scram-sha-512', username: kafka.username, password: 'wrong-one' },
    }),
    "Kafka refuses the gateway's SASL mechanism, user or password (broker.clusters[].sasl)",
  ],
  [
    'a certificate of an unknown authority',
    () => ({
      tls: { enabled: true },
      sasl: { mechanism: 'plain', username: kafka.username, password: kafka.password },
    }),
    'TLS with Kafka fails: DEPTH_ZERO_SELF_SIGNED_CERT (broker.clusters[].tls)',
  ],
  [
    'no TLS',
    () => ({ sasl: { mechanism: 'plain', username: kafka.username, password: kafka.password } }),
    'Kafka cannot be reached',
  ],
] as const)('%s: 503 that tells no secret, and not ready, with the cause', async (_name, cluster, cause) => {
  await withGateway(cluster(), async (call, url) => {
    const refused = await call<{ error: string; status: number }>('/topics');
    expect(refused).toMatchObject({ status: 503, body: { status: 503 } });
    expect(refused.ms).toBeLessThan(PROMPT_MS);
    const ready = await fetch(`${url}/readyz`);
    expect(ready.status).toBe(503);
    const reasons = await fetch(`${url}/readyz`, { headers: { authorization: `Bearer ${TOKENS.metrics}` } });
    const told = await reasons.text();
    expect(told).toContain(cause);
    for (const text of [refused.body.error, await ready.text(), told]) {
      expect(text).not.toContain(kafka.password);
      expect(text).not.toContain('wrong-one');
    }
  });
});

test('brokers that are far away: a connection takes many round trips', async () => {
  const { username, password, ca } = kafka;
  const cluster = {
    tls: { enabled: true, ca },
    sasl: { mechanism: 'scram-sha-512', username, password },
    topics: ['far-away'],
  };
  await withGateway(
    cluster,
    async (call, url) => {
      await eventually(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
      expect((await call('/produce/far-away', { value: 'hello' })).status).toBe(200);
      const headers = { 'Kafka-Auto-Offset-Reset': 'earliest' };
      const { body } = await call('/consume/g/i/far-away?timeout=60000', undefined, { headers });
      expect(body.map(({ value }) => value)).toEqual(['hello']);
    },
    kafka.distant,
  );
});

test('a connection that takes longer than the configuration allows is 503', async () => {
  const { username, password, ca } = kafka;
  const sasl = { mechanism: 'scram-sha-512', username, password };
  const cluster = { tls: { enabled: true, ca }, sasl, connectTimeoutMs: DISTANT_MS };
  await withGateway(
    cluster,
    async (call) => expect(await call('/topics')).toMatchObject({ status: 503, body: { status: 503 } }),
    kafka.distant,
  );
});
