import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddress from 'proxy-addr';

/** As a client is known, given a request of its connection; `null` when the connection is gone and nobody had asked before. */
export type ClientAddress = (request: IncomingMessage) => string | null;

/**
 * @param trusted proxies whose word in `X-Forwarded-For` counts: addresses, networks, and `loopback`, `linklocal`,
 * `uniquelocal`. Without any, the peer is the client.
 */
export function clientAddress(trusted: readonly string[]): ClientAddress {
  const peer: ClientAddress = ({ socket }) => plain(socket.remoteAddress);
  if (trusted.length === 0) return peer;
  const isTrusted = proxyAddress.compile([...trusted]);
  return (request) => {
    if (request.headers['x-forwarded-for'] === undefined) return peer(request);
    const told = withoutPort(proxyAddress(request, isTrusted) ?? '');
    // what a proxy wrote that is no address tells nothing
    return isIP(told) === 0 ? peer(request) : plain(told);
  };
}

/** An IPv4 address on a socket of IPv6 as itself. */
function plain(address: string | undefined): string | null {
  return address?.replace(/^::ffff:(?=\d+\.)/, '') ?? null;
}

/** Some proxies write the port of the client behind its address. */
function withoutPort(text: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([^:]*):\d+$/.exec(text)?.[1] ?? text;
}
