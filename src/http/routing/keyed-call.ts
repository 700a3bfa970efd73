import { isUtf8 } from 'node:buffer';
import { createHash, hash } from 'node:crypto';
import type { KeptCall, KeptReply } from '../../lib/kept-calls/kept-calls.js';
import { HttpError, toHttpError } from '../errors.js';
import { type Exchange, JSON_TYPE } from '../exchange/exchange.js';
import type { Idempotency } from '../idempotency.js';
import type { ServiceInstance } from '../instance.js';
import type { RouteContext } from '../route.js';

/** In the way of the IETF's draft draft-ietf-httpapi-idempotency-key-header. */
const HEADER = 'idempotency-key';
const KEY = /^[\x21-\x7e]{1,256}$/;

/** What a call may take beyond its deadline, in ms: by then it has its reply, or its gateway is gone. */
const MARGIN_MS = 10_000;

/** Longer replies are not kept. */
const KEPT_BYTES = 256 * 1024;

/** Headers of a request that change what is done or how it is answered. */
const TELLING = /(^|-)(encoding|response-format)$/;

/** A complete reply. */
export interface FinalReply {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly hasChangedData?: boolean | undefined;
}

/** A request with a key, as far as it has been read. */
export interface KeyedRequest {
  readonly method: string;
  /** Below the mount, with its query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

export function hasKey(headers: KeyedRequest['headers']): boolean {
  return headers[HEADER] !== undefined;
}

/** Answers a request by `work`, unless one with the same key was answered or begun before. */
export async function serveOnce(
  exchange: Exchange,
  instance: ServiceInstance,
  request: KeyedRequest,
  work: (context: RouteContext) => Promise<FinalReply>,
): Promise<void> {
  const { idempotency } = instance;
  if (idempotency === undefined) throw new Error('an instance with keyed routes says where replies are kept');
  const id = idOf(exchange, instance, request.headers[HEADER]);
  const call: KeptCall = {
    fingerprint: fingerprintOf(request),
    until: Date.now() + instance.timeoutMs + MARGIN_MS,
  };
  const kept = await claim(idempotency, id, call);
  const reply = kept === undefined ? await once(exchange, instance, id, call, work) : replayed(kept, call);
  exchange.send(reply.status, reply.contentType, reply.body, reply.headers, reply.hasChangedData);
}

/** Keys of different tokens and instances do not meet. @throws HttpError 400 */
function idOf({ principal }: Exchange, { name }: ServiceInstance, key: unknown): string {
  if (typeof key !== 'string' || !KEY.test(key))
    throw new HttpError(
      'invalid_request',
      'The header Idempotency-Key takes up to 256 printable ASCII characters without blanks.',
    );
  return hash('sha256', JSON.stringify([name, principal.key ?? principal.name, key]), 'base64url');
}

function fingerprintOf({ method, target, headers, body }: KeyedRequest): string {
  const telling = Object.entries(headers).filter(
    ([name]) => TELLING.test(name) && !name.startsWith('accept'),
  );
  return createHash('sha256')
    .update(JSON.stringify([method, target, telling.sort()]))
    .update(body)
    .digest('base64url');
}

async function claim(
  { calls, windowMs }: Idempotency,
  id: string,
  call: KeptCall,
): Promise<KeptCall | undefined> {
  if (calls === undefined)
    throw new HttpError(
      'not_served',
      'This gateway has no Postgres or Redis in which replies by Idempotency-Key could be kept.',
    );
  try {
    return await calls().claim(id, call, windowMs);
  } catch (cause) {
    const text = 'Whether this request was made before cannot be told at present; nothing was executed.';
    throw new HttpError('backend_unavailable', text, { cause });
  }
}

/** @throws HttpError what the call failed with */
async function once(
  exchange: Exchange,
  instance: ServiceInstance,
  id: string,
  call: KeptCall,
  work: (context: RouteContext) => Promise<FinalReply>,
): Promise<FinalReply> {
  const { calls, changedNothing } = instance.idempotency as Idempotency;
  const place = (calls as NonNullable<Idempotency['calls']>)();
  const noted = (end: Promise<void>) =>
    // the call has had its effect: whoever asks again is told that nobody knows
    end.catch((err: unknown) => exchange.log.warn({ err }, 'the reply to a call with a key was not kept'));
  try {
    const reply = await work(lasting(exchange, instance));
    await noted(place.finish(id, { ...call, reply: keptOf(reply, isSecret(exchange)) }));
    return reply;
  } catch (thrown) {
    const error = toHttpError(thrown);
    if (changedNothing(error)) await noted(place.release(id));
    else {
      const body = JSON.stringify(instance.formatError(error));
      const { status, headers } = error;
      const reply = keptOf({ status, contentType: JSON_TYPE, body, headers });
      await noted(place.finish(id, { ...call, reply }));
    }
    throw error;
  }
}

/** The same request, which goes on when its client has gone: who asks again with the key is to get its reply. */
function lasting(exchange: Exchange, { timeoutMs }: ServiceInstance): RouteContext {
  const signal = AbortSignal.timeout(timeoutMs);
  return {
    requestId: exchange.requestId,
    principal: exchange.principal,
    clientAddress: exchange.clientAddress,
    signal,
    get isOver() {
      return signal.aborted;
    },
    stopping: exchange.stopping,
    log: exchange.log,
    onOver: (listener, onReset) => exchange.onOver(listener, onReset),
    limitTo: (ms) => exchange.limitTo(ms),
    audit: (kind, target) => exchange.audit(kind, target),
  };
}

/** What administers may be answered with a credential, which is not to lie where others' data do. */
const isSecret = ({ audited }: Exchange) => audited?.kind === 'administrative';

function keptOf({ status, contentType, body, headers = {} }: FinalReply, withoutBody = false): KeptReply {
  const common = { status, contentType, headers };
  const bytes = Buffer.from(body as string);
  if (withoutBody || bytes.length > KEPT_BYTES) return { ...common, body: '', encoding: 'none' };
  return isUtf8(bytes) && !bytes.includes(0)
    ? { ...common, body: bytes.toString('utf8'), encoding: 'utf8' }
    : { ...common, body: bytes.toString('base64'), encoding: 'base64' };
}

/** @throws HttpError 422 for another request, 409 for one without a reply */
function replayed({ fingerprint, until, reply }: KeptCall, call: KeptCall): FinalReply {
  if (fingerprint !== call.fingerprint)
    throw new HttpError('unprocessable', 'This Idempotency-Key was used for another request.');
  if (reply === undefined && Date.now() < until)
    throw new HttpError('conflict', 'The request with this Idempotency-Key is still being worked on.', {
      retryAfter: 1,
    });
  if (reply === undefined)
    throw new HttpError(
      'conflict',
      'What became of the request with this Idempotency-Key is not known: its gateway ended meanwhile.',
    );
  const { status, contentType, body, encoding } = reply;
  if (encoding === 'none')
    throw new HttpError(
      'conflict',
      `The request with this Idempotency-Key was answered ${status}; its reply was too long to be kept, or may hold a secret.`,
    );
  const headers = { ...reply.headers, 'Idempotent-Replayed': 'true' };
  // whoever may write where it lay could make a second reply of it
  if (/[\r\n]/.test([contentType, ...Object.values(headers)].join('')))
    throw new HttpError('conflict', 'The reply that was kept for this Idempotency-Key is none.');
  return { status, contentType, headers, body: encoding === 'utf8' ? body : Buffer.from(body, 'base64') };
}
