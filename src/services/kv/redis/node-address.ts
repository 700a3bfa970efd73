import type { Address } from '../../../lib/address.js';

/** A node as `host:port`, which it is known by in Redis' redirections; an IPv6 address has no brackets there. */
export type NodeName = string;

export function nodeName({ host, port }: Address): NodeName {
  return `${host}:${port}`;
}
