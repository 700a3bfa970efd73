import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
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

describe('oauthbearer', () => {
  let asked: { authorization: string | undefined; form: string }[];
  let server: Server;
  /** What the server of tokens gives: a claim of who it is, for so many seconds. */
  let give: () => { sub: string; expiresIn: number; endedFor?: number } | undefined;

  beforeEach(async () => {
    asked = [];
    give = () => ({ sub: 'gateway', expiresIn: 3_600 });
    server = createServer((request, response) => {
      let form = '';
      request.on('data', (chunk) => {
        form += chunk;
      });
      request.on('end', () => {
        asked.push({ authorization: request.headers.authorization, form });
        const given = give();
        if (given === undefined) {
          response.writeHead(500).end();
          return;
        }
        const { sub, expiresIn, endedFor = 0 } = given;
        const now = Math.floor(Date.now() / 1_000) - endedFor;
        const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
        const claims = { sub, iat: now, exp: now + expiresIn };
        const token = `${part({ alg: 'none' })}.${part(claims)}.`;
        response.end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: expiresIn }));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  const cluster = () => {
    const tokenUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
    const oauth = { tokenUrl, clientId: 'me', clientSecret: 'secret-of-the-client', scope: 'kafka' };
    return { tls: { enabled: true, ca: kafka.ca }, sasl: { mechanism: 'oauthbearer', oauth } };
  };

  test('one token serves all connections; topics are administered with it, too', async () => {
    const topic = 'over-oauthbearer';
    const users = [{ username: TOKENS.username, password: TOKENS.password, topicAdmin: true }];
    await withGateway({ ...cluster(), topics: [topic], users }, async (call, url) => {
      await eventually(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
      expect((await call(`/produce/${topic}`, { value: 'by token' })).status).toBe(200);
      const headers = { 'Kafka-Auto-Offset-Reset': 'earliest' };
      const { body } = await call(`/consume/g/i/${topic}?timeout=30000`, undefined, { headers });
      expect(body.map(({ value }) => value)).toEqual(['by token']);
      expect((await call(`/topics/${topic}`, undefined, { method: 'GET' })).status).toBe(200);
      expect(asked).toEqual([
        {
          authorization: `Basic ${Buffer.from('me:secret-of-the-client').toString('base64')}`,
          form: 'grant_type=client_credentials&scope=kafka',
        },
      ]);
    });
  });

  test('without a token: 503 and not ready, with the cause; served as soon as there is one', async () => {
    give = () => undefined;
    await withGateway(cluster(), async (call, url) => {
      const refused = await call<{ error: string }>('/topics');
      expect([refused.status, refused.body.error]).toEqual([503, expect.not.stringContaining('127.0.0.1')]);
      const reasons = await fetch(`${url}/readyz`, {
        headers: { authorization: `Bearer ${TOKENS.metrics}` },
      });
      expect(await reasons.text()).toMatch(
        /no access token was given by 127[^"]*status 500 \(broker\.clusters\[\]\.sasl\.oauth\)/,
      );
      give = () => ({ sub: 'gateway', expiresIn: 3_600 });
      await eventually(async () => expect((await call('/topics')).status).toBe(200));
    });
  });

  test('a token that Kafka refuses is not kept', async () => {
    // over before it begins, by its claims
    give = () => ({ sub: 'gateway', expiresIn: 3_600, endedFor: 7_200 });
    await withGateway(cluster(), async (call) => {
      const refused = await call<{ error: string }>('/topics');
      expect([refused.status, refused.body.error]).toEqual([
        503,
        'Kafka and the gateway do not trust each other.',
      ]);
      give = () => ({ sub: 'gateway', expiresIn: 3_600 });
      await eventually(async () => expect((await call('/topics')).status).toBe(200));
    });
  });
});

test.each([
  [
    'a wrong password',
    () => ({
      tls: { enabled: true, ca: kafka.ca },
      sasl: { mechanism: 'plain', username: kafka.username, password: 'wrong-one' },
    }),
    "Kafka refuses the gateway's SASL mechanism, user, password or token (broker.clusters[].sasl)",
  ],
  [
    'another wrong password',
    () => ({
      tls: { enabled: true, ca: kafka.ca },
      sasl: { mechanism: 'scram-sha-512', username: kafka.username, password: 'wrong-one' },
    }),
    "Kafka refuses the gateway's SASL mechanism, user, password or token (broker.clusters[].sasl)",
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
