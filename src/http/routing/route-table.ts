import type { IncomingMessage, ServerResponse } from 'node:http';
import findMyWay from 'find-my-way';
import { badPath, HttpError } from '../errors.js';
import type { HttpCore } from '../exchange/http-core.js';
import type { ServiceInstance } from '../instance.js';
import { type Admit, admission, dispatcher, type MountedRequest, routePlaces } from './mount.js';

type Params = Record<string, string | undefined>;

/** What is found at a path: below which mount, and what to do there once the request is let in. */
interface Place {
  /** What the target loses before its credentials are looked at. */
  readonly mountLength: number;
  /** A `#` is part of the path: where all routes are raw, no client of theirs means anything else by it. */
  readonly keepsFragment: boolean;
  readonly admit: Admit;
  readonly serve: (request: MountedRequest, params: Params) => void;
}

/** Answers whether it took the request. */
export type ServeRoutes = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Methods are looked at behind the credentials, so all paths are kept under one. */
const ANY_METHOD = 'GET';

/**
 * Stands for `%` and `#` while a path is looked up: the router would decode or cut the path, and words count as they were
 * sent, as in Express. No request holds this character, because Node reads a target as Latin-1.
 */
const PERCENT = '\u{E000}';

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
  for (const path of leftToExpress) add(patternOf(path), null);
  for (const { path, instance } of mounts) {
    const prefix = path === '/' ? '' : path;
    const inner = mounts.filter((other) => other.path !== path && isBelow(other.path, prefix));
    for (const [pattern, place] of placesOf(core, prefix, instance))
      if (!inner.some((other) => isBelow(pattern, other.path))) add(pattern, place);
  }
  return (request, response) => {
    const url = request.url ?? '';
    let found = tree.find(ANY_METHOD, lookedUp(before(url, '?')));
    let place = found?.store as Place | null | undefined;
    if (place?.keepsFragment !== true && url.includes('#')) {
      found = tree.find(ANY_METHOD, lookedUp(pathOf(url)));
      place = found?.store as Place | null | undefined;
    }
    if (found === null || place == null) return false;
    request.url = slashed(url.slice(place.mountLength));
    if (place.admit(request, response) !== undefined) place.serve(request as MountedRequest, found.params);
    return true;
  };
}

/** The patterns of one instance; of equal ones the first counts. */
function* placesOf(core: HttpCore, mount: string, instance: ServiceInstance): Generator<[string, Place]> {
  const keepsFragment = instance.routes.every(({ kind }) => kind === 'raw');
  const common = { mountLength: mount.length, keepsFragment, admit: admission(core, instance) };
  for (const { path, prefix, routes } of routePlaces(instance)) {
    const dispatch = dispatcher(routes, instance);
    if (prefix) {
      const below = path === '/' ? '' : path;
      const serve = (request: MountedRequest) => {
        request.url = slashed(request.url.slice(below.length));
        dispatch(request);
      };
      yield* everythingBelow(mount + below, { ...common, serve });
      continue;
    }
    const rest = REST.exec(path);
    if (rest !== null) {
      const [, below, name] = rest as unknown as [string, string, string];
      const serve = (request: MountedRequest) => {
        const words = pathOf(request.url).slice(below.length).split('/');
        if (!decode(request, words)) return;
        Object.assign(request, { params: { [name]: words } });
        dispatch(request);
      };
      yield [`${mount}${below}*`, { ...common, serve }];
      continue;
    }
    const serve = (request: MountedRequest, params: Params) => {
      if (!decodeMarked(request, params)) return;
      request.params = params as Record<string, string>;
      dispatch(request);
    };
    if (path !== '/') yield [mount + patternOf(path), { ...common, serve }];
    else for (const root of new Set([mount || '/', `${mount}/`])) yield [root, { ...common, serve }];
  }
  const serve = ({ exchange }: MountedRequest) => exchange.fail(new HttpError('not_found'));
  yield* everythingBelow(mount, { ...common, serve });
}

function* everythingBelow(path: string, place: Place): Generator<[string, Place]> {
  if (path !== '') yield [path, place];
  yield [`${path}/*`, place];
}

/** Everything behind a path of words, at least one character: `/upsert/*namespace`. */
const REST = /^((?:\/\w[\w.~-]*)+\/)\*(\w+)$/;
const SEGMENT = /^:?\w[\w.~-]*$/;

/** A route's path in the router's words: there a parameter may be empty, here it may not. */
function patternOf(path: string): string {
  const segments = path.split('/').slice(1);
  if (!path.startsWith('/') || !segments.every((segment) => SEGMENT.test(segment)))
    throw new Error(`a route's path is words and parameters, not ${path}`);
  return segments.map((segment) => (segment[0] === ':' ? `/${segment}([^/]+)` : `/${segment}`)).join('');
}

/** Without one slash at the end, and nothing left that the router would decode or cut. */
function lookedUp(whole: string): string {
  let path = whole;
  if (path.length > 1 && path.endsWith('/')) path = path.slice(0, -1);
  return /[%#]/.test(path) ? path.replace(/[%#]/g, PERCENT) : path;
}

function pathOf(url: string): string {
  return before(before(url, '?'), '#');
}

function before(text: string, mark: string): string {
  const at = text.indexOf(mark);
  return at < 0 ? text : text.slice(0, at);
}

function decodeMarked(request: MountedRequest, params: Params): boolean {
  for (const name in params) {
    const value = params[name];
    if (value?.includes(PERCENT) === true) params[name] = value.replaceAll(PERCENT, '%');
  }
  return decode(request, params as Record<string, string>);
}

/** Each parameter by itself, so that `%2F` does not end one. @returns false when the request was answered with 400 */
function decode({ exchange }: MountedRequest, params: Record<string, string> | string[]): boolean {
  const values = params as Record<string, string>;
  try {
    for (const name in values) {
      const value = values[name] as string;
      if (value.includes('%')) values[name] = decodeURIComponent(value);
    }
    return true;
  } catch (error) {
    exchange.fail(badPath(error));
    return false;
  }
}

/** What is left of a target after a prefix begins with a slash again. */
function slashed(rest: string): string {
  return rest[0] === '/' ? rest : `/${rest}`;
}

function isBelow(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}
