import type { ServerResponse } from 'node:http';

/**
 * Lets a complete reply break its connection when the client takes nothing of it for `timeoutMs`: the socket's timer
 * begins anew whenever it took something.
 * @returns false when there is nothing to watch yet: a reply behind another's has no socket
 */
export function limitUnread(response: ServerResponse, timeoutMs: number): boolean {
  const { socket } = response;
  if (socket === null || response.writableFinished) return false;
  socket.setTimeout(timeoutMs);
  // before Node's own listener, which sets the time for idle connections
  response.prependOnceListener('finish', () => socket.setTimeout(0));
  return true;
}
