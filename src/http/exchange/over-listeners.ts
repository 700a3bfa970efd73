import type { IncomingMessage, ServerResponse } from 'node:http';
import { linger, watchForReset } from './reset-watch.js';

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
