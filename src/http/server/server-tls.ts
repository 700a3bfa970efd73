import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { TlsOptions } from 'node:tls';
import type { HttpSettings } from '../settings.js';

/** A client that has not shaken hands by then is cut, in ms. */
const HANDSHAKE_MS = 10_000;

/** Options with a certificate as it stands in its file. */
export type ServerTls = TlsOptions & { readonly cert: Buffer };

/**
 * What a port is served with, its files as they are now; `undefined` without TLS.
 * @param isForOperators probes and scrapers, which have no certificate of their own to show
 * @throws Error when a file can no longer be read
 */
export function serverTls({ tls }: HttpSettings, isForOperators: boolean): ServerTls | undefined {
  const { cert, key, clientCa, minVersion } = tls;
  if (cert === null || key === null) return undefined;
  const asksClients = clientCa !== null && !isForOperators;
  return {
    cert: readFileSync(cert),
    key: readFileSync(key),
    minVersion,
    handshakeTimeout: HANDSHAKE_MS,
    ALPNProtocols: ['http/1.1'],
    ...(asksClients ? { ca: readFileSync(clientCa), requestCert: true, rejectUnauthorized: true } : {}),
  };
}

/** When the certificate in a PEM file ends, in s since 1970. */
export function certificateEnd(pem: string | Buffer): number {
  return new X509Certificate(pem).validToDate.getTime() / 1_000;
}
