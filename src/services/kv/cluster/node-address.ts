import type { Address } from '../backend.js';

/** A node as `host:port`, which it is known by in Redis' redirections; an IPv6 address has no brackets there. */
export type NodeName = string;

export function nodeName({ host, port }: Address): NodeName {
  return `${host}:${port}`;
}

export function addressOf(name: NodeName): Address {
  const colon = name.lastIndexOf(':');
  return { host: name.slice(0, colon), port: Number(name.slice(colon + 1)) };
}
