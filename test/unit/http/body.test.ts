import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { readBody } from '../../../src/http/body.js';

const LIMIT = 3_000_000;
const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** Sends `head` and then `pieces`, each when the one before is out; resolves to the first line of the reply and its body. */
async function exchange(head: string, pieces: readonly Buffer[]): Promise<string> {
  const server = createServer((request: IncomingMessage, response) => {
    readBody(request, LIMIT, () => undefined).then(
      (body) => response.end(`${body.length} ${hashOf(body)}`),
      (error: Error) => response.writeHead(413, { connection: 'close' }).end(error.message),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${head}\r\n\r\n`);
    for (const piece of pieces) await new Promise((resolve) => socket.write(piece, resolve));
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString('latin1');
  } finally {
    socket.destroy();
    server.close();
  }
}

const parts = (bytes: Buffer, size: number) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));

test.each([0, 1, 7, 70_000, 2_000_000])(
  'a body of %i bytes is whole, announced or in chunks',
  async (length) => {
    const body = randomBytes(length);
    const expected = `${length} ${hashOf(body)}`;
    for (const size of [1 + (length >> 2), 65_521]) {
      const pieces = parts(body, size);
      expect(await exchange(`Content-Length: ${length}`, pieces)).toContain(expected);
      const chunked = pieces.map((piece) =>
        Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
      );
      expect(await exchange('Transfer-Encoding: chunked', [...chunked, Buffer.from('0\r\n\r\n')])).toContain(
        expected,
      );
    }
  },
);

test('a body over the limit is refused, whether it says so before or not', async () => {
  expect(await exchange(`Content-Length: ${LIMIT + 1}`, [])).toMatch(/413.*limit of 3000000 bytes/s);
  const chunk = Buffer.concat([Buffer.from(`${(LIMIT + 1).toString(16)}\r\n`), Buffer.alloc(LIMIT + 1)]);
  expect(await exchange('Transfer-Encoding: chunked', [chunk])).toMatch(/413.*limit of 3000000 bytes/s);
});
