import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Requests of one connection that are at work, or answered behind another that is not, at once; and that are begun in one turn
 * of the loop. Whoever sends more before the answers gets them in that order anyway, and each that is at work holds what it reads.
 */
const AT_ONCE = 8;
/** Requests that waited and are handled in one turn of the loop: 5 ms. */
const A_TURN = 64;
/**
 * A connection is not read while so many of its requests wait: no more wait than this and what a piece of 64 KiB holds. While
 * fewer do it is, so that its end is seen.
 */
const MANY_WAITING = 64;

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** A connection on which requests wait. */
interface Line {
  readonly requests: (() => void)[];
  /** It is among those that have a turn. */
  hasTurn: boolean;
}

const STATE = Symbol('state');

/** What is known of a connection. */
interface State {
  /** How many bytes had come with the piece that is being read, and the requests in it so far. */
  bytes: number;
  requests: number;
  /** All requests so far. */
  total: number;
  /** Requests that were begun while one before them was not answered. */
  behind: number;
}

type KnownSocket = Socket & { [STATE]?: State };

/**
 * Requests that come many in a piece have their turns: of a socket that has more, libuv hands on 2 MiB at once, which are
 * 40,000 requests and half a second.
 */
export function inTurns(handle: Handle): Handle {
  const lines = new Map<Socket, Line>();
  /** Those that may go on, in the order of their turns. */
  const turns = new Set<KnownSocket>();
  let isDue = false;
  const begin = (request: IncomingMessage, response: ServerResponse) => {
    if (response.socket === null) countBehind(request.socket, response);
    handle(request, response);
  };
  const countBehind = (socket: KnownSocket, response: ServerResponse) => {
    const state = stateOf(socket);
    state.behind += 1;
    // Node's own word for it (node:_http_server, `assignSocket`)
    response.once('socket', () => {
      state.behind -= 1;
      giveTurn(socket);
    });
  };
  const giveTurn = (socket: KnownSocket) => {
    const line = lines.get(socket);
    if (line === undefined || line.hasTurn) return;
    line.hasTurn = true;
    turns.add(socket);
    if (!isDue) setImmediate(goOn);
    isDue = true;
  };
  const goOn = () => {
    isDue = false;
    let left = A_TURN;
    for (const socket of [...turns]) {
      if (left <= 0) break;
      turns.delete(socket);
      left -= goOnWith(socket);
    }
    if (turns.size === 0 || isDue) return;
    isDue = true;
    setImmediate(goOn);
  };
  /** @returns how many requests were begun */
  const goOnWith = (socket: KnownSocket): number => {
    const line = lines.get(socket);
    if (line === undefined) return 0;
    line.hasTurn = false;
    const next = line.requests.splice(0, AT_ONCE - stateOf(socket).behind);
    for (const beginOne of next) beginOne();
    if (line.requests.length === 0) lines.delete(socket);
    // behind the others
    else if (stateOf(socket).behind < AT_ONCE) giveTurn(socket);
    if (line.requests.length < MANY_WAITING && !socket.destroyed) socket.resume();
    return next.length;
  };
  const known = new WeakSet<Socket>();
  const watch = (socket: KnownSocket) => {
    if (known.has(socket)) return;
    known.add(socket);
    // Node resumes it with each request whose body is read or passed over
    socket.on('resume', () => {
      if ((lines.get(socket)?.requests.length ?? 0) >= MANY_WAITING) socket.pause();
    });
    socket.once('close', () => lines.delete(socket));
  };
  return (request, response) => {
    const { socket } = request;
    stateOf(socket).total += 1;
    const line = lines.size === 0 ? undefined : lines.get(socket);
    if (line !== undefined) {
      if (line.requests.push(() => begin(request, response)) >= MANY_WAITING) socket.pause();
    } else if (mayBegin(socket)) {
      begin(request, response);
    } else {
      watch(socket);
      lines.set(socket, { requests: [() => begin(request, response)], hasTurn: false });
      if (stateOf(socket).behind < AT_ONCE) giveTurn(socket);
    }
  };
}

/** How many requests have come on a connection. */
export function requestsOn(socket: Socket): number {
  return stateOf(socket).total;
}

function stateOf(socket: KnownSocket): State {
  socket[STATE] ??= { bytes: -1, requests: 0, total: 0, behind: 0 };
  return socket[STATE];
}

/** Counts a request. @returns whether it may begin at once */
function mayBegin(socket: KnownSocket): boolean {
  const state = stateOf(socket);
  const { bytesRead } = socket;
  if (state.bytes !== bytesRead) {
    state.bytes = bytesRead;
    state.requests = 0;
  }
  state.requests += 1;
  return state.requests <= AT_ONCE && state.behind < AT_ONCE;
}
