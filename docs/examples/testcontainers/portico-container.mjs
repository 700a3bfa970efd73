import { AbstractStartedContainer, GenericContainer, Wait } from 'testcontainers';

const [gatewayPort, resetPort] = [8070, 8071];
const startLimitMs = 120_000;

/** Portico and its four backends in one container, for tests written in Node. */
export class PorticoContainer extends GenericContainer {
  constructor(image = 'portico:dev') {
    super(image);
    this.withEnvironment({ PORTICO_TEST_TOKENS: 'on' })
      .withExposedPorts(gatewayPort, resetPort)
      .withWaitStrategy(Wait.forHealthCheck())
      .withStartupTimeout(startLimitMs);
  }

  /** @param {Record<string, number>} topics name and number of partitions */
  withTopics(topics) {
    const list = Object.entries(topics).map(([name, partitions]) => `${name}:${partitions}`);
    return this.withEnvironment({ PORTICO_BROKER_TOPICS: list.join(',') });
  }

  /** @param {{dimension: number, similarity?: 'COSINE' | 'EUCLIDEAN' | 'DOT_PRODUCT'}} index the one at /vector */
  withIndex({ dimension, similarity = 'COSINE' }) {
    return this.withEnvironment({
      PORTICO_VECTOR_INDEXES_0_DIMENSION: String(dimension),
      PORTICO_VECTOR_INDEXES_0_SIMILARITY: similarity,
    });
  }

  async start() {
    return new StartedPorticoContainer(await super.start());
  }
}

export class StartedPorticoContainer extends AbstractStartedContainer {
  /** The base URL. */
  get url() {
    return `http://${this.getHost()}:${this.getMappedPort(gatewayPort)}`;
  }

  /** What clients need, as the image's test tokens have it. */
  get kv() {
    return { url: `${this.url}/kv`, token: 'portico-test-kv-0123456789' };
  }

  get vector() {
    return { url: `${this.url}/vector`, token: 'portico-test-vector-0123456789' };
  }

  get broker() {
    return {
      url: `${this.url}/broker`,
      username: 'portico-test',
      password: 'portico-test-broker-0123456789',
    };
  }

  get queue() {
    return { baseUrl: `${this.url}/queue`, token: 'portico-test-queue-0123456789' };
  }

  /** Empties Redis, Postgres, Kafka and RabbitMQ; declared topics and indexes stay. */
  async reset() {
    const url = `http://${this.getHost()}:${this.getMappedPort(resetPort)}/reset`;
    const headers = { authorization: `Bearer ${this.kv.token}` };
    const answer = await fetch(url, { method: 'POST', headers });
    if (!answer.ok) throw new Error(`reset: ${answer.status} ${await answer.text()}`);
  }
}
