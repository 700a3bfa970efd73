import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** A small balancer: each connection goes to the next gateway that takes it. */
export async function startBalancer(ports) {
  let turn = 0;
  const sockets = new Set();
  const forward = (client, tries) => {
    const port = ports[turn++ % ports.length];
    const upstream = connect(port, '127.0.0.1');
    const failed = () => (tries > 1 ? forward(client, tries - 1) : client.destroy());
    upstream.once('error', failed);
    upstream.once('connect', () => {
      upstream.off('error', failed);
      upstream.on('error', () => undefined);
      client.pipe(upstream).pipe(client);
      client.once('close', () => upstream.destroy());
      upstream.once('close', () => client.destroy());
    });
  };
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => undefined);
    client.once('close', () => sockets.delete(client));
    forward(client, ports.length);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address();
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
