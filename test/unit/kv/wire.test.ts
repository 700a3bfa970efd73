import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { Wire } from '../../../src/services/kv/redis/wire.js';
import { eventually } from '../../support/eventually.js';

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

/** A Redis that gives each GET what `sizes` says, once `go` is called; and how many commands it has had by then. */
async function slowRedis(sizes: (n: number) => number) {
  let got = 0;
  let answered = 0;
  let peer: Socket | undefined;
  const server = createServer((socket) => {
    peer = socket;
    // the client goes without a word
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      got += chunk.toString('latin1').split('GET').length - 1;
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  return {
    wire: new Wire(socket, 10_000),
    got: () => got,
    /** Answers the next one; of a large one so much at first. */
    answer(first = 1): void {
      const body = Buffer.alloc(sizes(answered), 'x');
      answered += 1;
      const whole = Buffer.concat([Buffer.from(`$${body.length}\r\n`), body, Buffer.from('\r\n')]);
      peer?.write(whole.subarray(0, Math.ceil(whole.length * first)));
      if (first < 1) this.rest = () => peer?.write(whole.subarray(Math.ceil(whole.length * first)));
    },
    rest: () => {},
    close: () => {
      socket.destroy();
      server.close();
    },
  };
}

const GET = '*2\r\n$3\r\nGET\r\n$1\r\nk\r\n';
const MIB = 1024 * 1024;

test('while large replies come, few are asked for at once, and all when they are small again', async () => {
  const redis = await slowRedis((n) => (n < 3 ? 20 * MIB : 10));
  const { wire } = redis;
  const lengths: number[] = [];
  const get = () => wire.submit(GET, 1, ([reply]) => lengths.push((reply as Buffer).length));
  const first = get();
  await eventually(async () => expect(redis.got()).toBe(1));
  redis.answer(0.5);
  // its length is known by now
  await eventually(async () => expect(wire.pending).toBe(1));
  await new Promise((resolve) => setTimeout(resolve, 100));
  const others = Array.from({ length: 40 }, get);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(redis.got()).toBe(1);
  redis.rest();
  await first;
  await eventually(async () => expect(redis.got()).toBe(2));
  redis.answer();
  await eventually(async () => expect(redis.got()).toBe(3));
  redis.answer();
  await eventually(async () => expect(redis.got()).toBe(4));
  for (let n = 3; n < 41; n++) {
    await eventually(async () => expect(redis.got()).toBeGreaterThan(n));
    redis.answer();
  }
  await Promise.all(others);
  expect(lengths).toEqual([...Array(3).fill(20 * MIB), ...Array(38).fill(10)]);
  await Promise.all([
    get(),
    get(),
    get(),
    (async () => {
      await eventually(async () => expect(redis.got()).toBe(44));
      for (let n = 0; n < 3; n++) redis.answer();
    })(),
  ]);
  redis.close();
});

test('what is held back when the connection breaks was not sent', async () => {
  const redis = await slowRedis(() => 20 * MIB);
  const sent = redis.wire.submit(GET, 1, (replies) => replies);
  await eventually(async () => expect(redis.got()).toBe(1));
  redis.answer(0.5);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const held = redis.wire.submit(GET, 1, (replies) => replies);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const outcomes = Promise.allSettled([sent, held]);
  redis.close();
  const statuses = (await outcomes).map(
    (outcome) => (outcome as { reason?: { status: number } }).reason?.status,
  );
  expect(statuses).toEqual([502, 503]);
});

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
