import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpError } from '../errors.js';
import type { HttpCore } from '../exchange/http-core.js';
import type { ServiceInstance } from '../instance.js';
import { admission, dispatcher, type MountedRequest, type RoutePlace, routePlaces } from './mount.js';
import { plainPaths } from './plain-paths.js';

/** Answers whether it took the request. */
type Serve = (request: IncomingMessage, response: ServerResponse, target: string) => boolean;

/**
 * The app's first layer: serves what needs nothing of Express' routers. These are instances whose routes are all raw,
 * with fixed paths, and of the others the requests whose path is plain and the raw routes that have everything below
 * their path to themselves. Passing through two routers costs as much again as this layer's own pass through Express
 * (measured at 64 connections, GET of a key: 0.9 of bare node:http with it, 1.0 outside Express altogether). Exchange,
 * credentials, limits and replies are the same code.
 * @param mounts longest path first
 * @returns whether the request was taken
 */
export function frontLayer(
  core: HttpCore,
  mounts: readonly { readonly path: string; readonly instance: ServiceInstance }[],
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const places = mounts.map(({ path, instance }) => ({
    prefix: path === '/' ? '' : path,
    serve: isRaw(instance) ? serveRaw(core, instance) : serveMixed(core, instance),
  }));
  return (request, response) => {
    const url = request.url ?? '';
    for (const { prefix, serve } of places) {
      if (!url.startsWith(prefix)) continue;
      const next = url[prefix.length];
      if (next !== undefined && next !== '/' && next !== '?') continue;
      return serve(request, response, url.slice(prefix.length));
    }
    return false;
  };
}

function isRaw({ routes }: ServiceInstance): boolean {
  return routes.every(({ kind, path }) => kind === 'raw' && !/[:*{]/.test(path));
}

function serveRaw(core: HttpCore, instance: ServiceInstance): Serve {
  const admit = admission(core, instance);
  const exact = new Map<string, (request: MountedRequest) => void>();
  const prefixes: { path: string; dispatch: (request: MountedRequest) => void }[] = [];
  for (const { path, routes, prefix } of routePlaces(instance)) {
    const dispatch = dispatcher(routes, instance);
    if (prefix) prefixes.push({ path: path === '/' ? '' : path, dispatch });
    else exact.set(path, dispatch);
  }
  return (request, response, target) => {
    request.url = slashed(target);
    const exchange = admit(request, response);
    if (exchange === undefined) return true;
    const path = pathOf(request.url);
    let dispatch = exact.get(path);
    if (dispatch === undefined) {
      const place = prefixes.find((each) => isBelow(path, each.path));
      dispatch = place?.dispatch;
      // as Express cuts the path of `router.use`
      if (place !== undefined && place.path !== '')
        request.url = slashed(request.url.slice(place.path.length));
    }
    if (dispatch === undefined) exchange.fail(new HttpError('not_found'));
    else dispatch(request as MountedRequest);
    return true;
  };
}

/** Of an instance with other routes too: what is taken here is what Express' routers would find for it. */
function serveMixed(core: HttpCore, instance: ServiceInstance): Serve {
  const plain = servePlain(core, instance);
  const ownPrefixes = serveOwnPrefixes(core, instance);
  return (request, response, target) =>
    plain(request, response, target) || ownPrefixes(request, response, target);
}

function servePlain(core: HttpCore, instance: ServiceInstance): Serve {
  const admit = admission(core, instance);
  const exact = routePlaces(instance).filter(({ prefix }) => !prefix);
  const find = plainPaths(
    exact.map(({ path, routes }) => ({ path, dispatch: dispatcher(routes, instance) })),
  );
  return (request, response, target) => {
    const found = find(withoutQuery(target));
    if (found === undefined) return false;
    request.url = target;
    if (admit(request, response) === undefined) return true;
    const mounted = request as MountedRequest;
    mounted.params = found.params;
    found.place.dispatch(mounted);
    return true;
  };
}

/** Of an instance with routes of both kinds: the raw ones whose prefix no other route's path shares. */
function serveOwnPrefixes(core: HttpCore, instance: ServiceInstance): Serve {
  const places = routePlaces(instance);
  const admit = admission(core, instance);
  const own = places
    .filter(({ path, prefix, routes }) => prefix && path !== '/' && isRaw({ ...instance, routes }))
    .filter((place) => places.every((other) => other === place || !mayMeet(other, place.path)))
    .map(({ path, routes }) => ({ path, dispatch: dispatcher(routes, instance) }));
  return (request, response, target) => {
    const path = pathOf(target);
    const place = own.find((each) => isBelow(path, each.path));
    if (place === undefined) return false;
    request.url = slashed(target.slice(place.path.length));
    if (admit(request, response) !== undefined) place.dispatch(request as MountedRequest);
    return true;
  };
}

/** Whether a request below `prefix` may belong to other routes, the first pattern in whose path stands for anything. */
function mayMeet(other: RoutePlace, prefix: string): boolean {
  const fixed = other.path.split(/[:*{]/, 1)[0] as string;
  if (other.prefix && isBelow(prefix, other.path)) return true;
  return fixed === other.path
    ? isBelow(fixed, prefix)
    : fixed.startsWith(`${prefix}/`) || prefix.startsWith(fixed);
}

/** What is left of a target after a prefix begins with a slash again. */
function slashed(rest: string): string {
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Without the query and, as Express does, without one slash at the end. */
function pathOf(url: string): string {
  const path = withoutQuery(url);
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

function withoutQuery(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

function isBelow(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}
