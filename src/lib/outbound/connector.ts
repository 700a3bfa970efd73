import type { LookupAddress, lookup } from 'node:dns';
import { isIP, type Socket } from 'node:net';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { buildConnector } from 'undici';
import { type TlsFiles, tlsOptions } from '../tls.js';
import { type AddressGuard, hostKey, ofHost, portOf } from './address-guard.js';
import { guardedLookup, type SharedLookup, sharedLookup } from './guarded-lookup.js';
import { OutboundError } from './outbound-error.js';
import { openTunnel } from './tunnel.js';
import { tolerant } from './unasked-continue.js';

/** Longest time for TCP and TLS to a destination, in ms. */
export const CONNECT_MS = 10_000;

/** HTTP/1.1 alone, which undici 8 no longer keeps to by itself: what headers may be passed on is that protocol's. */
export const ALLOW_H2 = false;

/** How destinations are reached, where that is not directly and with the well-known authorities. */
export interface Ways {
  /** An HTTP proxy that everything goes through, by CONNECT. It may hold a user and a password. */
  readonly proxy?: URL | undefined;
  /** PEM text of authorities that are trusted beside the well-known ones. */
  readonly authorities?: string | undefined;
  /** Certificates for single hosts: `host`, or `host:port` for one port of it. */
  readonly hosts?: readonly { readonly host: string; readonly tls: TlsFiles }[] | undefined;
}

type Connect = buildConnector.connector;

/**
 * Connects where `guard` lets it, on the ways that are asked for. Behind a proxy a name is judged by the addresses that it has
 * here, as far as it has any; what the proxy makes of it is the proxy's.
 */
export function waysConnector(guard: AddressGuard, ways: Ways, resolve: typeof lookup): Connect {
  const addressesOf = sharedLookup(resolve);
  const direct = directConnector(guard, ways, addressesOf);
  const { proxy } = ways;
  const connect = proxy === undefined ? direct : proxiedConnector(proxy, guard, addressesOf, direct);
  return (options, callback) => {
    // `lookup` is not asked about IP literals (undici 8.12), so they are judged here
    const refusal =
      isIP(options.hostname) === 0 ? undefined : guard.judgeHost(options.hostname, portOf(options));
    if (refusal === undefined) connect(options, tolerant(callback));
    else callback(blocked(refusal), null);
  };
}

const blocked = (reason: string) => new OutboundError('blocked', reason);

/** Connects by the certificates of the host and the permissions of the port, neither of which a look-up or a handshake is told. */
function directConnector(guard: AddressGuard, ways: Ways, addressesOf: SharedLookup): Connect {
  const contexts = secureContexts(ways);
  const made = new Map<SecureContext | undefined, Map<number, Connect>>();
  return (options, callback) => {
    const port = portOf(options);
    const context = contexts(options.hostname, port);
    const ofContext = made.get(context) ?? new Map<number, Connect>();
    made.set(context, ofContext);
    // all ports that no entry names are judged alike
    const judged = guard.ports.has(port) ? port : 0;
    const connect =
      ofContext.get(judged) ??
      buildConnector({
        timeout: CONNECT_MS,
        allowH2: ALLOW_H2,
        lookup: guardedLookup(guard, addressesOf, judged, blocked),
        ...(context === undefined ? {} : { secureContext: context }),
      });
    ofContext.set(judged, connect);
    connect(options, callback);
  };
}

/** The certificates of a host, made once: with all well-known authorities that takes milliseconds. */
function secureContexts({
  authorities,
  hosts = [],
}: Ways): (hostname: string, port: number) => SecureContext | undefined {
  const trusted = authorities === undefined ? undefined : [...getCACertificates('default'), authorities];
  const ofAll = trusted && createSecureContext({ ca: trusted });
  const ofHosts = new Map(
    hosts.map(({ host, tls }) => {
      const { ca = trusted, ...own } = tlsOptions(tls);
      return [hostKey(host), createSecureContext({ ...own, ...(ca === undefined ? {} : { ca }) })];
    }),
  );
  return (hostname, port) => ofHost(ofHosts, hostname, port) ?? ofAll;
}

function proxiedConnector(
  proxy: URL,
  guard: AddressGuard,
  addressesOf: SharedLookup,
  direct: Connect,
): Connect {
  const connect = async (options: buildConnector.Options): Promise<Socket> => {
    const { hostname, protocol } = options;
    const port = portOf(options);
    if (isIP(hostname) === 0) {
      // names that only the proxy knows have no address here
      const addresses = await addressesOf(hostname, {}).catch((): LookupAddress[] => []);
      const refusals = addresses.map(({ address }) => guard.judgeAddress(address, hostname, port));
      const [refusal] = refusals;
      if (refusal !== undefined && !refusals.includes(undefined)) throw blocked(refusal);
    }
    const socket = await openTunnel(proxy, hostname, port, CONNECT_MS);
    if (protocol !== 'https:') return socket;
    return new Promise((resolve, reject) => {
      direct({ ...options, httpSocket: socket }, (...[error, secure]) => {
        if (error === null) resolve(secure);
        else reject(error);
      });
    });
  };
  return (options, callback) => {
    void connect(options).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}
