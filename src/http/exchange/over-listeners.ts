import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Who wants to know how an exchange ended. Made on first use: most requests end before anybody asks. */
export class OverListeners {
  private readonly listeners: ((sent: boolean) => void)[] = [];
  private readonly resetListeners: (() => void)[] = [];
  private flushed = false;

  constructor(
    private readonly request: IncomingMessage,
    response: ServerResponse,
  ) {
    // `writableFinished` is also true of a reply whose connection broke, and so is this event when its write failed
    response.once('finish', () => {
      const { socket } = request;
      this.flushed = !socket.destroyed && socket.errored === null;
    });
  }

  add(listener: (sent: boolean) => void, onReset: (() => void) | undefined): void {
    this.listeners.push(listener);
    if (onReset === undefined) return;
    this.resetListeners.push(onReset);
    linger(this.request.socket);
  }

  /** @param undisturbed neither an error nor the client ended it. @returns whether the whole reply went out */
  tell(undisturbed: boolean): boolean {
    const sent = undisturbed && this.flushed && this.request.method !== 'HEAD';
    for (const listener of this.listeners) listener(sent);
    if (sent && this.resetListeners.length > 0)
      watchForReset(this.request.socket, () => {
        for (const listener of this.resetListeners) listener();
      });
    return sent;
  }
}

/**
 * A client that is given up on after so long, in ms, has read what it was sent: balancers reset connections that were
 * idle, but later than that.
 */
const WATCH_MS = 10_000;

const watches = new WeakMap<Socket, (hadError: boolean) => void>();

/** A connection that ends with this reply is closed on this side only, until its client closes it too: else a reset would meet nobody. */
function linger(socket: Socket): void {
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
