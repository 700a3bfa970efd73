import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import fc from 'fast-check';
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

const MIB = 1024 * 1024;

/** Answers each `GET n` with n and as much more as `sizes` says, in chunks of any length. */
async function countingRedis(sizes: readonly number[], chunks: readonly number[]) {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    let text = '';
    let chunk = 0;
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      const whole = text.lastIndexOf(';') + 1;
      const numbers = [...text.slice(0, whole).matchAll(/(\d+);/g)].map(([, n]) => Number(n));
      text = text.slice(whole);
      for (const n of numbers) {
        const body = `${n};${'x'.repeat(sizes[n] as number)}`;
        const reply = Buffer.from(`$${body.length}\r\n${body}\r\n`);
        for (let at = 0; at < reply.length; ) {
          const length = chunks[chunk++ % chunks.length] as number;
          socket.write(reply.subarray(at, at + length));
          at += length;
        }
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  const close = () => {
    socket.destroy();
    server.close();
  };
  return { wire: new Wire(socket, 10_000), close };
}

test('every request gets its own reply, however large those before it were', async () => {
  const size = fc.oneof(fc.nat(300), fc.nat(300), fc.integer({ min: MIB / 2, max: 6 * MIB }));
  const pause = fc.oneof(fc.constant(0), fc.constant(0), fc.integer({ min: 1, max: 4 }));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(size, pause), { minLength: 1, maxLength: 40 }),
      fc.array(fc.integer({ min: 50_000, max: 3 * MIB }), { minLength: 1, maxLength: 8 }),
      async (requests, chunks) => {
        const { wire, close } = await countingRedis(
          requests.map(([length]) => length),
          chunks,
        );
        const answers: Promise<string>[] = [];
        for (const [n, [, ms]] of requests.entries()) {
          const name = ([reply]: unknown[]) => (reply as Buffer).toString('latin1', 0, 12).split(';')[0];
          answers.push(wire.submit(`${n};`, 1, name) as Promise<string>);
          if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
        }
        expect(await Promise.all(answers)).toEqual(requests.map((_, n) => String(n)));
        expect(wire.pending).toBe(0);
        close();
      },
    ),
    { numRuns: 60 },
  );
});
