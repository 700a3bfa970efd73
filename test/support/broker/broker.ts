import { type RunningGateway, startGateway } from '../gateway.js';
import { type BrokerClient, brokerClient, type KafkaNamespace, kafkaNamespace } from './kafka.js';

export type Failure = { error: string; status: number };

export interface BrokerUnderTest {
  readonly call: BrokerClient;
  readonly kafka: KafkaNamespace;
  readonly url: () => string;
}

/** A gateway with the broker service for the tests of a file, and topics and groups of the file's own. */
export function brokerUnderTest(cluster: Record<string, unknown> = {}): BrokerUnderTest {
  let gateway: RunningGateway | undefined;
  let kafka: KafkaNamespace | undefined;
  let call: BrokerClient | undefined;
  beforeAll(async () => {
    kafka = await kafkaNamespace();
    gateway = await startGateway({ broker: { clusters: [cluster] } });
    call = brokerClient(gateway.url);
  });
  afterAll(async () => {
    await gateway?.stop();
    await kafka?.dispose();
  });
  return {
    call: ((...request: Parameters<BrokerClient>) => (call as BrokerClient)(...request)) as BrokerClient,
    kafka: new Proxy({} as KafkaNamespace, {
      get: (_, key) => (kafka as KafkaNamespace)[key as keyof KafkaNamespace],
    }),
    url: () => (gateway as RunningGateway).url,
  };
}
