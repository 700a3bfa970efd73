import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of one connection that are handled one after the other; further ones of the same piece wait for their turn. */
const AT_ONCE = 8;
/** Requests that waited and are handled in one turn of the loop: 5 ms. */
const A_TURN = 64;

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

const PIECE = Symbol('piece');
/** What a connection is known by: how many bytes had come with the piece that is being read, and the requests in it so far. */
type PiecedSocket = Socket & { [PIECE]?: { bytes: number; requests: number } };

/**
 * Requests that come many in a piece have their turns: of a socket that has more, libuv hands on 2 MiB at once, which are
 * 40,000 requests and half a second. A connection is not read while requests of it wait, so that no more wait than a
 * piece of 64 KiB holds.
 */
export function inTurns(handle: Handle): Handle {
  const waiting = new Map<Socket, (() => void)[]>();
  const goOn = () => {
    let left = A_TURN;
    for (const [socket, requests] of waiting) {
      if (left <= 0) break;
      waiting.delete(socket);
      if (socket.destroyed) continue;
      const next = requests.splice(0, AT_ONCE);
      left -= next.length;
      for (const begin of next) begin();
      // behind the others; Node itself keeps one paused whose reader takes nothing
      if (requests.length > 0) waiting.set(socket, requests);
      else socket.resume();
    }
    if (waiting.size > 0) setImmediate(goOn);
  };
  const held = new WeakSet<Socket>();
  const hold = (socket: Socket) => {
    socket.pause();
    if (held.has(socket)) return;
    held.add(socket);
    // Node resumes it with each request whose body is read or passed over
    socket.on('resume', () => {
      if (waiting.has(socket)) socket.pause();
    });
  };
  return (request, response) => {
    const { socket } = request;
    const requests = waiting.size === 0 ? undefined : waiting.get(socket);
    if (requests !== undefined) {
      requests.push(() => handle(request, response));
    } else if (countInPiece(socket) <= AT_ONCE) {
      handle(request, response);
    } else {
      if (waiting.size === 0) setImmediate(goOn);
      waiting.set(socket, [() => handle(request, response)]);
      hold(socket);
    }
  };
}

/** @returns how many requests began with the bytes that came last */
function countInPiece(socket: PiecedSocket): number {
  const { bytesRead } = socket;
  socket[PIECE] ??= { bytes: bytesRead, requests: 0 };
  const piece = socket[PIECE];
  if (piece.bytes !== bytesRead) {
    piece.bytes = bytesRead;
    piece.requests = 0;
  }
  piece.requests += 1;
  return piece.requests;
}
