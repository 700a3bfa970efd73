import { connect } from 'node:net';

/**
 * One short conversation over TCP with a backend, for handshakes.
 * @param {number} port on 127.0.0.1
 * @param {(send: (bytes: Buffer | string) => void, read: (length: number) => Promise<Buffer>) => Promise<T>} talk
 *   `read` waits for exactly so many bytes
 * @param {number} [timeoutMs] for the whole conversation
 * @returns {Promise<T>}
 * @template T
 * @throws {Error} when nothing listens, the peer hangs up, or the time is over
 */
export async function exchange(port, talk, timeoutMs = 2_000) {
  const socket = connect({ host: '127.0.0.1', port });
  let buffer = Buffer.alloc(0);
  /** @type {(value?: unknown) => void} */
  let waiting = () => undefined;
  let failure;
  const fail = (reason) => {
    failure ??= reason;
    waiting();
  };
  const timer = setTimeout(
    () => fail(new Error(`no answer on port ${port} within ${timeoutMs} ms`)),
    timeoutMs,
  );
  socket.on('data', (chunk) => {
    buffer = Buffer.concat([buffer, chunk]);
    waiting();
  });
  socket.on('error', fail);
  socket.on('close', () => fail(new Error(`port ${port} hung up`)));
  const read = async (length) => {
    while (buffer.length < length) {
      if (failure) throw failure;
      await new Promise((resolve) => {
        waiting = resolve;
      });
    }
    const taken = buffer.subarray(0, length);
    buffer = buffer.subarray(length);
    return taken;
  };
  try {
    return await talk((bytes) => socket.write(bytes), read);
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}
