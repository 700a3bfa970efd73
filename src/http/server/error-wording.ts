import type { IncomingMessage } from 'node:http';
import { plainFormat } from '../exchange/error-sender.js';
import type { ServiceInstance } from '../instance.js';
import type { ErrorFormat } from '../route.js';
import { type Gate, gateOf } from '../routing/auth.js';

/** How to word the error of a request that no instance took, or that was none yet. */
export interface ErrorWording {
  /** By path, else by the only contract of the port, else by whose credentials the request carries. */
  ofRequest(request: IncomingMessage, url: string): ErrorFormat;
  /** Of a target as far as it is known: by path, else by the only contract of the port. */
  ofTarget(url: string | undefined): ErrorFormat;
}

/** @param mounts of one port, longest path first */
export function errorWording(
  mounts: readonly { readonly path: string; readonly instance: ServiceInstance }[],
): ErrorWording {
  const places = mounts.map(({ path, instance }) => ({
    prefix: path === '/' ? '' : path,
    format: instance.formatError,
    gate: gateOf(instance),
  }));
  // the gateway's own pages are no contract
  const formats = new Set(places.map(({ format }) => format).filter((format) => format !== plainFormat));
  const only = formats.size === 1 ? places[0]?.format : undefined;
  const known = (url: string | undefined) =>
    (url === undefined ? undefined : places.find(({ prefix }) => isBelow(url, prefix))?.format) ?? only;
  return {
    ofRequest: (request, url) =>
      known(url) ?? places.find(({ gate }) => lets(gate, request))?.format ?? plainFormat,
    ofTarget: (url) => known(url) ?? plainFormat,
  };
}

/** Of a token made at run time nobody may know at present whose it is. */
function lets(gate: Gate, request: IncomingMessage): boolean {
  try {
    return gate.authenticate(request) !== undefined;
  } catch {
    return false;
  }
}

function isBelow(url: string, prefix: string): boolean {
  return url.startsWith(prefix) && /^([/?]|$)/.test(url.slice(prefix.length, prefix.length + 1));
}
