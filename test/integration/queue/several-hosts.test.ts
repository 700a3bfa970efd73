import { backendAddress } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { publish, queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';
import { startRelay, type TcpRelay } from '../../support/tcp-relay.js';

/** Two ways to one RabbitMQ stand for two nodes of a cluster. */
const namespace = queueNamespace();
let nodes: TcpRelay[];
let gateway: RunningGateway;
let receiver: Receiver;

beforeAll(async () => {
  const address = new URL(backendAddress('PORTICO_RABBITMQ_URL'));
  nodes = await Promise.all([startRelay(Number(address.port)), startRelay(Number(address.port))]);
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
  gateway = await startGateway(
    { queue: namespace.config },
    { PORTICO_RABBITMQ_URL: address.href.replace(address.host, hosts) },
  );
  receiver = await startReceiver();
});

afterAll(async () => {
  await gateway?.stop();
  await Promise.all(nodes.map((node) => node.stop()));
  await receiver?.stop();
  await namespace.remove();
});

const delivered = async (path: string) => {
  await eventually(async () => expect((await publish(gateway, receiver.url + path)).status).toBe(200));
  await eventually(() => expect(receiver.received.map(({ url }) => url)).toContain(path));
};

it('whichever node of RabbitMQ is lost, messages are taken and delivered by way of another', async () => {
  await delivered('/both');
  for (const [i, node] of nodes.entries()) {
    node.cut();
    await delivered(`/without-${i}`);
    node.release();
  }
});
