import type { Socket } from 'node:net';

/**
 * A client that is given up on after so long, in ms, has read what it was sent: balancers reset connections that were
 * idle, but later than that.
 */
const WATCH_MS = 10_000;

const watches = new WeakMap<Socket, (hadError: boolean) => void>();

/** A connection that ends with this reply is closed on this side only, until its client closes it too: else a reset would meet nobody. */
export function linger(socket: Socket): void {
  // what Node calls when the last reply is written
  socket.destroySoon = () => {
    socket.end();
    const late = setTimeout(() => socket.destroy(), WATCH_MS);
    socket.once('close', () => clearTimeout(late));
  };
}

/**
 * Calls `listener` when the connection is reset within 10 s and the client sent nothing more on it. The system takes
 * some megabytes of a reply at once, so one that went out completely may still be lost with its connection: whoever
 * closes a connection without having read all that arrived resets it.
 */
export function watchForReset(socket: Socket, listener: () => void): void {
  const { bytesRead } = socket;
  const since = performance.now();
  const closed = (hadError: boolean) => {
    if (hadError && socket.bytesRead === bytesRead && performance.now() - since < WATCH_MS) listener();
  };
  // a connection is watched for its last reply only: who asks for the next has read the one before
  const before = watches.get(socket);
  if (before !== undefined) socket.off('close', before);
  watches.set(socket, closed);
  socket.once('close', closed);
}
