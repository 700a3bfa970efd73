import type { IncomingMessage, ServerResponse } from 'node:http';
import findMyWay from 'find-my-way';
import type { Span } from '../../lib/traces/span.js';
import { badPath, HttpError } from '../errors.js';
import type { Exchange } from '../exchange/exchange.js';
import type { HttpCore } from '../exchange/http-core.js';
import type { ServiceInstance } from '../instance.js';
import {
  type Admit,
  admission,
  dispatcher,
  type MountedRequest,
  type RoutePlace,
  routePlaces,
} from './mount.js';

/** What is found at a path: below which mount, and what to do there once the request is let in. */
interface Place {
  /** What the target loses before its credentials are looked at. */
  readonly mountLength: number;
  /** A `#` belongs to the path, as a command's argument may hold one. */
  readonly keepsFragment: boolean;
  readonly admit: Admit;
  /** Its target begins behind the mount. */
  readonly serve: (request: MountedRequest) => void;
}

/** Answers whether it took the request. */
export type ServeRoutes = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Methods are looked at behind the credentials, so all paths are kept under one. */
const ANY_METHOD = 'GET';

/**
 * Stands for `%` and `#` while a path is looked up: the router would decode or cut there, but words count as they were
 * sent, as in Express. No request holds this character, because Node reads a target as Latin-1.
 */
const MARK = '\u{E000}';

const NO_SEARCH_PARAMS = {};

/**
 * The routes of all instances of one port, compiled into one radix tree. The longest mount that a path lies below is
 * found first and its credentials are checked; only then does it show whether there is a route, and for which methods.
 * Of several routes that fit, the one whose words fit wins over one with parameters, and both over everything below a
 * prefix, whatever their order.
 * @param leftToExpress paths that a mount at `/` does not take
 */
export function routeTable(
  core: HttpCore,
  mounts: readonly { readonly path: string; readonly instance: ServiceInstance }[],
  leftToExpress: readonly string[],
): ServeRoutes {
  const tree = findMyWay({
    // a path is as long as the server takes it
    maxParamLength: Number.MAX_SAFE_INTEGER,
    querystringParser: () => NO_SEARCH_PARAMS,
  });
  const add = (pattern: string, place: Place | null) => {
    if (!tree.hasRoute(ANY_METHOD, pattern)) tree.on(ANY_METHOD, pattern, () => {}, place);
  };
  for (const path of leftToExpress) add(patternOf(segmentsOf(path)), null);
  for (const { path, instance } of mounts) {
    const mount = path === '/' ? '' : path;
    const inner = mounts.filter((other) => other.path !== path && isBelow(other.path, mount));
    // beside pages at the root it ends the path, as it ends theirs
    const keepsFragment = isRaw(instance) && (mount !== '' || leftToExpress.length === 0);
    const common = { mountLength: mount.length, keepsFragment };
    const [admit, admitAnybody] = [false, true].map((isOpen) => admission(core, instance, isOpen)) as [
      Admit,
      Admit,
    ];
    for (const { pattern, serve, isOpen } of patternsOf(instance, mount))
      if (!inner.some((other) => isBelow(pattern, other.path)))
        add(pattern, { ...common, admit: isOpen ? admitAnybody : admit, serve });
  }
  tree.compile();
  const find = (path: string) => tree.find(ANY_METHOD, lookedUp(path))?.store as Place | null | undefined;

  return (request, response) => {
    const url = request.url ?? '';
    let place = find(before(url, '?'));
    if (place?.keepsFragment !== true && url.includes('#')) place = find(pathOf(url));
    if (place == null) return false;
    request.url = slashed(url.slice(place.mountLength));
    const admitted = place.admit(request, response);
    if (admitted instanceof Promise) serveLater(admitted, place, request);
    else if (admitted !== undefined) serveNow(admitted, place, request);
    return true;
  };
}

function serveNow({ span }: Exchange, place: Place, request: IncomingMessage): void {
  if (span === undefined) place.serve(request as MountedRequest);
  else serveInSpan(span, place, request);
}

/** What it asks of backends then lies in the span. Apart, as is what follows: other requests have no use for the closure. */
function serveInSpan(span: Span, place: Place, request: IncomingMessage): void {
  span.run(() => place.serve(request as MountedRequest));
}

function serveLater(admitted: Promise<Exchange | undefined>, place: Place, request: IncomingMessage): void {
  void admitted.then((exchange) => {
    if (exchange !== undefined && !exchange.isOver) serveNow(exchange, place, request);
  });
}

interface PatternPlace {
  readonly pattern: string;
  readonly serve: Place['serve'];
  readonly isOpen: boolean;
}

/** The router's patterns for one instance and what is done there; of equal ones the first counts. */
function* patternsOf(instance: ServiceInstance, mount: string): Generator<PatternPlace> {
  for (const place of routePlaces(instance)) {
    const isOpen = place.routes.every((route) => route.isOpen === true);
    for (const [pattern, serve] of patternsOfPlace(place, instance, mount)) yield { pattern, serve, isOpen };
  }
  for (const [pattern, serve] of everythingBelow(mount, ({ exchange }) =>
    exchange.fail(new HttpError('not_found')),
  ))
    yield { pattern, serve, isOpen: false };
}

function* patternsOfPlace(
  { path, prefix, routes }: RoutePlace,
  instance: ServiceInstance,
  mount: string,
): Generator<[string, Place['serve']]> {
  const dispatch = dispatcher(routes, instance);
  if (prefix) {
    const below = path === '/' ? '' : path;
    yield* everythingBelow(mount + below, (request) => {
      request.url = slashed(request.url.slice(below.length));
      dispatch(request);
    });
  } else if (path === '/') {
    for (const root of new Set([mount || '/', `${mount}/`])) yield [root, dispatch];
  } else {
    const segments = segmentsOf(path);
    yield [mount + patternOf(segments), withParams(segments, dispatch)];
  }
}

function* everythingBelow(path: string, serve: Place['serve']): Generator<[string, Place['serve']]> {
  if (path !== '') yield [path, serve];
  yield [`${path}/*`, serve];
}

/** A word, a parameter or, at the end, everything behind: `/consume/:group`, `/upsert/*namespace`. */
const SEGMENT = /^(?::\w+|[\w.~-]+)$/;
const REST = /^\*\w+$/;

function segmentsOf(path: string): string[] {
  const segments = path.split('/').slice(1);
  const isKnown = segments.every(
    (segment, i) => SEGMENT.test(segment) || (i === segments.length - 1 && REST.test(segment)),
  );
  if (!path.startsWith('/') || !isKnown)
    throw new Error(`a route's path is words and parameters, and at its end a rest, not ${path}`);
  return segments;
}

/** In the router's words, whose parameters may be empty. */
function patternOf(segments: readonly string[]): string {
  return segments
    .map((segment) => {
      if (segment.startsWith(':')) return `/${segment}([^/]+)`;
      return segment.startsWith('*') ? '/*' : `/${segment}`;
    })
    .join('');
}

function withParams(
  segments: readonly string[],
  dispatch: (request: MountedRequest) => void,
): Place['serve'] {
  if (!segments.some((segment) => /^[:*]/.test(segment))) return dispatch;
  return (request) => {
    try {
      Object.assign(request, { params: paramsOf(segments, pathOf(request.url)) });
    } catch (error) {
      request.exchange.fail(badPath(error));
      return;
    }
    dispatch(request);
  };
}

/** Decoded each by itself, so that `%2F` does not end one. @throws URIError where a percent sign begins no character */
function paramsOf(segments: readonly string[], path: string): Record<string, string | string[]> {
  const words = path.split('/').slice(1);
  const params: Record<string, string | string[]> = {};
  for (const [i, segment] of segments.entries()) {
    const name = segment.slice(1);
    if (segment.startsWith(':')) params[name] = decodeURIComponent(words[i] as string);
    else if (segment.startsWith('*')) params[name] = words.slice(i).map(decodeURIComponent);
  }
  return params;
}

/** Without one slash at the end, and nothing left that the router would decode or cut. */
function lookedUp(path: string): string {
  const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
  return /[%#]/.test(trimmed) ? trimmed.replace(/[%#]/g, MARK) : trimmed;
}

function pathOf(url: string): string {
  return before(before(url, '?'), '#');
}

function before(text: string, mark: string): string {
  const at = text.indexOf(mark);
  return at < 0 ? text : text.slice(0, at);
}

/** What is left of a target after a prefix begins with a slash again. */
function slashed(rest: string): string {
  return rest[0] === '/' ? rest : `/${rest}`;
}

function isBelow(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}

function isRaw({ routes }: ServiceInstance): boolean {
  return routes.every(({ kind }) => kind === 'raw');
}
