import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Wire } from '../../../src/services/kv/redis/wire.js';

test('a command that comes as the server ends the connection was not sent, and nothing is left to end the process', async () => {
  const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const wire = new Wire(socket, 10_000);
  socket.resume();
  // the socket is closed in the turn of the event loop after this one
  await once(socket, 'end');
  const reply = wire.submit('*1\r\n$4\r\nPING\r\n', 1, (replies) => replies);
  await expect(reply).rejects.toMatchObject({ status: 503 });
  server.close();
});
