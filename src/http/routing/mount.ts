import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request } from 'express';
import { ByteBudget } from '../../lib/byte-budget.js';
import { joinedTexts } from '../../lib/json/joined-texts.js';
import { nextTurn } from '../../lib/slices.js';
import { hasBody, NOTHING, readBody } from '../body.js';
import { decodedBody, decoderFor, refuseCoding } from '../content-coding.js';
import { HttpError, toHttpError } from '../errors.js';
import { errorSender } from '../exchange/error-sender.js';
import { Exchange, JSON_TYPE } from '../exchange/exchange.js';
import type { HttpCore } from '../exchange/http-core.js';
import { bodyPieces, sendPieces } from '../exchange/pieces.js';
import type { ServiceInstance } from '../instance.js';
import type { RawStream } from '../raw-stream.js';
import {
  type BoundRoute,
  JsonText,
  Pieces,
  type Principal,
  type RawReply,
  type RawRequest,
  Reply,
  type RequestLimits,
} from '../route.js';
import { challenge, gateOf } from './auth.js';
import { checked, inputOf } from './input.js';
import { type FinalReply, hasKey, type KeyedRequest, serveOnce } from './keyed-call.js';

export type MountedRequest = Request & { exchange: Exchange };
type JsonRoute = Extract<BoundRoute, { kind: 'json' }>;

/** Requests with larger bodies begin one a turn of the loop: however many come at once, small ones get between any two. */
const TURN_BYTES = 16 * 1024;

/**
 * Opens the exchange of a request and lets it in: room, credentials. `undefined` when it was answered with why not; a promise
 * where somebody has to be asked.
 */
export type Admit = (
  request: IncomingMessage,
  response: ServerResponse,
) => Exchange | undefined | Promise<Exchange | undefined>;

/** Bytes of bodies that may come at once, on one path, from those who show no credentials: each is in memory until it is answered. */
const OPEN_BYTES = 32 * 1024 * 1024;

/** Whoever calls a route that asks for no credentials. */
const ANYBODY: Principal = { name: 'anybody', access: 'full' };

/** @param isOpen no credentials are asked for */
export function admission(core: HttpCore, instance: ServiceInstance, isOpen: boolean): Admit {
  const gate = isOpen ? { authenticate: () => ANYBODY } : gateOf(instance);
  const unauthorized = { headers: { 'WWW-Authenticate': challenge(instance.auth) } };
  const sendError = errorSender(instance.formatError);
  return (request, response) => {
    const exchange = new Exchange(core, request, response, sendError);
    (request as MountedRequest).exchange = exchange;
    try {
      if (core.inFlight > core.settings.maxInFlight) throw new HttpError('overloaded');
      core.addressLimits?.take(request);
      const principal = gate.authenticate(request);
      if (principal === undefined) throw new HttpError('unauthorized', undefined, unauthorized);
      exchange.principal = principal;
      return principal.limits === undefined ? exchange : withinLimits(exchange, principal.limits);
    } catch (error) {
      exchange.fail(toHttpError(error));
      return undefined;
    }
  };
}

/** The body stays unread meanwhile. */
async function withinLimits(exchange: Exchange, limits: RequestLimits): Promise<Exchange | undefined> {
  try {
    const { refusal, headers } = await limits.take();
    if (refusal !== undefined) throw refusal;
    exchange.moreHeaders = headers;
    return exchange;
  } catch (error) {
    exchange.fail(toHttpError(error));
    return undefined;
  }
}

/** Routes of one instance at one path. */
export interface RoutePlace {
  readonly path: string;
  /** They take everything below the path. */
  readonly prefix: boolean;
  readonly routes: readonly BoundRoute[];
}

/** Exact paths before prefixes, else in the order of the table. */
export function routePlaces({ routes }: ServiceInstance): RoutePlace[] {
  const isPrefix = (route: BoundRoute) => route.kind === 'raw' && route.prefix === true;
  const at = (prefix: boolean) =>
    [...routesByPath(routes.filter((route) => isPrefix(route) === prefix))].map(([path, same]) => ({
      path,
      prefix,
      routes: same,
    }));
  return [...at(false), ...at(true)];
}

function routesByPath(routes: readonly BoundRoute[]): Map<string, BoundRoute[]> {
  const paths = new Map<string, BoundRoute[]>();
  for (const route of routes) {
    const same = paths.get(route.path);
    if (same === undefined) paths.set(route.path, [route]);
    else same.push(route);
  }
  return paths;
}

/** Serves an admitted request by the route of its method; 405 when there is none. */
export function dispatcher(
  routes: readonly BoundRoute[],
  instance: ServiceInstance,
): (request: MountedRequest) => void {
  const byMethod = new Map<string, BoundRoute>();
  for (const route of routes) {
    for (const method of route.methods) byMethod.set(method, route);
  }
  const get = byMethod.get('GET');
  if (get !== undefined && get.changesData !== true && !byMethod.has('HEAD')) byMethod.set('HEAD', get);
  const allow = [...byMethod.keys()].join(', ');
  const openRoom = new ByteBudget(OPEN_BYTES);

  return (request) => {
    const { exchange } = request;
    const route = byMethod.get(request.method);
    if (route === undefined) {
      exchange.fail(
        new HttpError('method_not_allowed', `Use one of: ${allow}.`, { headers: { Allow: allow } }),
      );
      return;
    }
    exchange.operationId = route.operationId;
    if (route.audit !== undefined) exchange.audit(route.audit, namesIn(request));
    if (route.isOpen === true && !takesRoom(request, openRoom, limitOf(route, instance))) {
      exchange.fail(new HttpError('too_many_requests', undefined, { retryAfter: 1 }));
      return;
    }
    const work =
      route.kind === 'raw' ? serveRaw(route, request, instance) : serveJson(route, request, instance);
    work.catch((error: unknown) => exchange.fail(toHttpError(error)));
  };
}

/** What the path names: topics, namespaces, ids. */
function namesIn({ params = {} }: MountedRequest): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, [value].flat().join('/')]));
}

/** Takes room for the body of a request until that is over. @returns false where there is none */
function takesRoom(request: MountedRequest, room: ByteBudget, limit: number): boolean {
  if (!hasBody(request)) return true;
  // one that does not say its length may have as much as is allowed
  const bytes = Math.min(limit, Number(request.headers['content-length'] ?? limit));
  if (!room.take(bytes)) return false;
  request.exchange.onOver(() => room.giveBack(bytes));
  return true;
}

/** A body that keeps coming has the time that `http.requestTimeoutMs` gives it: the deadline of the answer begins behind it. */
async function bodyOf(request: Request, route: BoundRoute, instance: ServiceInstance): Promise<Buffer> {
  const { exchange } = request as MountedRequest;
  const limit = limitOf(route, instance);
  const decode = route.keepsEncoding === true ? undefined : decoderFor(request.headers);
  exchange.bodyProgress();
  const sent = await readBody(request, limit, () => exchange.bodyProgress());
  exchange.bodyDone();
  const body = decode === undefined ? sent : await decodedBody(sent, decode, limit);
  if (body.length > TURN_BYTES) await nextTurn();
  return body;
}

function limitOf({ operationId }: BoundRoute, { bodyLimit, bodyLimits }: ServiceInstance): number {
  return bodyLimits?.[operationId] ?? bodyLimit;
}

async function serveRaw(
  route: Extract<BoundRoute, { kind: 'raw' }>,
  request: Request,
  instance: ServiceInstance,
): Promise<void> {
  const { exchange } = request as MountedRequest;
  const body = hasBody(request) ? await bodyOf(request, route, instance) : NOTHING;
  exchange.limitTo(instance.timeoutMs);
  refuseReader(route, exchange);
  const { method, url: target, originalUrl, headers: given } = request;
  const raw = { method, target, originalTarget: originalUrl, headers: given, body };
  if (isOnce(route, request, instance)) {
    await serveRawOnce(route, raw, exchange, instance);
    return;
  }
  const reply = await route.handle(raw, exchange, undefined);
  if (reply instanceof Pieces) {
    await sendPieces(exchange, reply);
    return;
  }
  if ('open' in reply) {
    exchange.openStream(reply);
    return;
  }
  const { status, contentType = JSON_TYPE, headers, hasChangedData } = reply;
  exchange.send(status, contentType, reply.body, headers, hasChangedData);
}

/** Apart, as requests without a key have no use for its closure. */
function serveRawOnce(
  route: Extract<BoundRoute, { kind: 'raw' }>,
  raw: RawRequest,
  exchange: Exchange,
  instance: ServiceInstance,
): Promise<void> {
  return serveOnce(exchange, instance, raw, async (context) =>
    complete(await route.handle(raw, context, undefined)),
  );
}

function serveJsonOnce(
  route: JsonRoute,
  input: never,
  request: KeyedRequest,
  exchange: Exchange,
  instance: ServiceInstance,
): Promise<void> {
  return serveOnce(exchange, instance, request, async (context) =>
    completeJson(route, await route.handle(input, context, undefined)),
  );
}

function isOnce(route: BoundRoute, { headers }: Request, { idempotency }: ServiceInstance): boolean {
  return route.isKeyed === true && hasKey(headers) && idempotency !== undefined;
}

/** @throws HttpError 400 for a reply that has no end yet */
function complete(reply: RawReply | RawStream | Pieces): FinalReply {
  if (reply instanceof Pieces || 'open' in reply)
    throw new HttpError('invalid_request', 'A stream takes no Idempotency-Key.');
  return { ...reply, contentType: reply.contentType ?? JSON_TYPE };
}

async function serveJson(route: JsonRoute, request: Request, instance: ServiceInstance): Promise<void> {
  const { exchange } = request as MountedRequest;
  if (route.bodyFlow?.takes(request.headers)) {
    const params = checked(route.request?.params, 'path', () => request.params) as never;
    refuseReader(route, exchange);
    refuseCoding(request.headers);
    if (isOnce(route, request, instance))
      throw new HttpError('invalid_request', 'A body of any length takes no Idempotency-Key.');
    const pieces = bodyPieces(request, exchange, instance.timeoutMs);
    const value = await route.bodyFlow.handle({ params, body: pieces }, exchange, undefined);
    await sendValue(exchange, route, value);
    return;
  }
  const body = await bodyOf(request, route, instance);
  const read = inputOf(route, request, body, instance.headerAlias);
  const input = read instanceof Promise ? await read : read;
  exchange.limitTo(route.timeoutMs?.(input) ?? instance.timeoutMs);
  refuseReader(route, exchange);
  if (isOnce(route, request, instance)) {
    const { method, url: target, headers } = request;
    await serveJsonOnce(route, input, { method, target, headers, body }, exchange, instance);
    return;
  }
  await sendValue(exchange, route, await route.handle(input, exchange, undefined));
}

async function completeJson({ changesData }: JsonRoute, value: unknown): Promise<FinalReply> {
  const reply = value instanceof Reply ? value : new Reply(200, value);
  const { status, headers } = reply;
  return {
    status,
    contentType: JSON_TYPE,
    body: await jsonOf(reply.body),
    headers,
    hasChangedData: changesData,
  };
}

/** A request that is wrong in itself is told so first. @throws HttpError 403 */
function refuseReader({ changesData, isForReaders }: BoundRoute, { principal }: Exchange): void {
  if (principal.access === 'read' && !(isForReaders ?? changesData !== true))
    throw new HttpError('forbidden', 'This token may only read.');
}

async function sendValue(exchange: Exchange, { changesData }: JsonRoute, value: unknown): Promise<void> {
  if (value instanceof Pieces) {
    await sendPieces(exchange, value);
    return;
  }
  const reply = value instanceof Reply ? value : undefined;
  const json = jsonOf(reply === undefined ? value : reply.body);
  const body = json instanceof Promise ? await json : json;
  exchange.send(reply?.status ?? 200, JSON_TYPE, body, reply?.headers, changesData);
}

function jsonOf(value: unknown): string | Buffer | Promise<Buffer> {
  if (!(value instanceof JsonText)) return JSON.stringify(value);
  const { text } = value;
  return typeof text === 'string' || Buffer.isBuffer(text) ? text : joinedTexts(text);
}
