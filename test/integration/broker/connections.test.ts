import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { brokerClient } from '../../support/broker/kafka.js';
import { startGateway } from '../../support/gateway.js';

test('a broker that lets nobody in is not asked anew for each request', async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const gateway = await startGateway({ broker: {} }, { PORTICO_KAFKA_BROKERS: `127.0.0.1:${port}` });
  try {
    const call = brokerClient(gateway.url);
    const [begin, before] = [performance.now(), connections];
    for (let i = 0; i < 100; i++) expect((await call('/topics')).status).toBe(503);
    const seconds = (performance.now() - begin) / 1_000;
    // the pauses begin with less than 0.1 s and come to 0.5 s at least
    expect(connections - before).toBeLessThan(10 + 3 * seconds);
  } finally {
    await gateway.stop();
    server.close();
  }
});
