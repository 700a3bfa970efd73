import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { HttpError } from '../../../http/errors.js';
import { deadlineOf } from '../../../lib/deadline.js';
import type { Consumed } from '../group/consumer-instance.js';
import {
  ARRIVED,
  COUNT_HEADER,
  DELIVERY_HEADER,
  errorOf,
  ID_HEADER,
  JOINED_HEADER,
  type PeerMessage,
  type Pong,
} from './peer-protocol.js';
import type { PeerPlace } from './peer-server.js';

/** No connection came about, so the peer has seen nothing of the request: another may have it. */
export class PeerUnreachable extends Error {}

/** The peer may have done what was asked, and has not said so. */
export class PeerBrokeOff extends HttpError {
  constructor(cause: unknown) {
    super('backend_unavailable', 'The gateway that has this instance broke off.', { cause });
  }
}

const FREE_SOCKETS = 64;
const CONNECT_MS = 1_000;
const PING_MS = 1_000;
/** What an answer may take beyond the wait that it was asked for, in ms. */
const GRACE_MS = 9_000;

/** Asks other gateways. */
export class PeerClient {
  private readonly agent = new Agent({ keepAlive: true, maxFreeSockets: FREE_SOCKETS });
  private readonly authorization: string;

  constructor(secret: string) {
    this.authorization = `Bearer ${secret}`;
  }

  /** @param id who asks @throws whatever went wrong, also after 1 s without an answer */
  async ping(place: PeerPlace, id: string): Promise<Pong> {
    const deadline = deadlineOf(PING_MS);
    try {
      const call = this.open(place, 'GET', '/ping', deadline.signal, { [ID_HEADER]: id });
      call.end();
      return JSON.parse(String(await bodyOf(await replyTo(call)))) as Pong;
    } finally {
      deadline.release();
    }
  }

  /** Anything but a consume. @throws HttpError what the peer answered, PeerBrokeOff, PeerUnreachable */
  ask(place: PeerPlace, message: PeerMessage, signal: AbortSignal): Promise<unknown> {
    return onFreshSocket(async () => {
      const deadline = deadlineOf(GRACE_MS, signal);
      try {
        const call = this.open(place, 'POST', '/', deadline.signal);
        call.end(`${JSON.stringify(message)}\n`);
        return JSON.parse(String(await bodyOf(await replyTo(call))));
      } finally {
        deadline.release();
      }
    });
  }

  /**
   * The request stays open until its records have arrived at the client: the owner hands them out again when it breaks.
   * @param gone aborts when nobody wants the records any more, or the peer is lost
   * @throws HttpError what the peer answered, PeerBrokeOff, PeerUnreachable
   */
  consume(place: PeerPlace, message: PeerMessage, waitMs: number, gone: AbortSignal): Promise<Consumed> {
    return onFreshSocket(async () => {
      const deadline = deadlineOf(waitMs + GRACE_MS, gone);
      const call = this.open(place, 'POST', '/', deadline.signal);
      call.write(`${JSON.stringify(message)}\n`);
      try {
        const reply = await replyTo(call);
        const messages = await bodyOf(reply);
        return {
          messages,
          count: Number(reply.headers[COUNT_HEADER]),
          isJoined: reply.headers[JOINED_HEADER] === '1',
          delivery: reply.headers[DELIVERY_HEADER] as string | undefined,
          settle: (arrived) => {
            if (arrived) call.end(ARRIVED);
            else call.destroy();
          },
        };
      } catch (error) {
        call.destroy();
        throw error;
      } finally {
        deadline.release();
      }
    });
  }

  close(): void {
    this.agent.destroy();
  }

  private open(
    place: PeerPlace,
    method: string,
    path: string,
    signal: AbortSignal,
    headers: Record<string, string> = {},
  ): ClientRequest {
    const call = request({
      ...('path' in place ? { socketPath: place.path } : place),
      method,
      path,
      agent: this.agent,
      headers: { ...headers, authorization: this.authorization },
      timeout: 0,
    });
    const cut = () => call.destroy(new Error('the peer did not answer in time'));
    signal.addEventListener('abort', cut);
    call.once('close', () => signal.removeEventListener('abort', cut));
    call.once('socket', (socket) => {
      if (!socket.connecting) return;
      const timer = setTimeout(() => call.destroy(new PeerUnreachable('no connection in time')), CONNECT_MS);
      socket.once('connect', () => clearTimeout(timer));
      socket.once('close', () => clearTimeout(timer));
    });
    // there is a listener for the reply already; what comes later is nobody's
    call.on('error', () => {});
    return call;
  }
}

function replyTo(call: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    call.once('response', resolve);
    call.once('error', (error: NodeJS.ErrnoException) => {
      const isUnreachable = error instanceof PeerUnreachable || NEVER_CONNECTED.has(error.code ?? '');
      if (isUnreachable) reject(new PeerUnreachable(error.message, { cause: error }));
      else if (call.reusedSocket && error.code === 'ECONNRESET') reject(new StaleSocket(error.message));
      else reject(new PeerBrokeOff(error));
    });
  });
}

/** A kept connection that the peer had closed. Everything that is asked of a peer may be asked twice. */
class StaleSocket extends Error {}

async function onFreshSocket<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof StaleSocket)) throw error;
      if (tries > FREE_SOCKETS) throw new PeerUnreachable('every connection was closed', { cause: error });
    }
  }
}

const NEVER_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

async function bodyOf(reply: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of reply) chunks.push(chunk as Buffer);
  } catch (cause) {
    throw new PeerBrokeOff(cause);
  }
  const body = Buffer.concat(chunks);
  if (reply.statusCode === 200) return body;
  throw errorOf(body.toString());
}
