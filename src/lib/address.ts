/** Where a server listens; an IPv6 host has no brackets. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** `host:port` as configuration has it, an IPv6 host in brackets. */
export const HOST_AND_PORT = /^([^\s:,[\]]+|\[[0-9a-fA-F:.]+\]):\d{1,5}$/;

/** Reads `host:port`; an IPv6 host may have its brackets or, as in Redis' redirections, none. */
export function parseAddress(text: string): Address {
  const colon = text.lastIndexOf(':');
  return { host: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) };
}
