import { isIPv6 } from 'node:net';
import { type HttpSettings, httpSettings } from '../settings.js';
import type { DocumentedServer } from './openapi.js';

/** As long as nobody has configured anything. */
export function defaultServers(): DocumentedServer[] {
  const { host, port } = httpSettings.parse({});
  return [{ url: urlOf('http', host, port), description: 'As `npm start` serves it.' }];
}

/**
 * Where a gateway is reached: below where its document was read, whatever stands before it, and where it listens. The
 * operations' port serves the document and none of the services.
 */
export function serversOf({ host, port, operationsPort, tls }: HttpSettings): DocumentedServer[] {
  const own = {
    url: urlOf(tls.cert === null ? 'http' : 'https', host, port),
    description: 'Where the gateway listens.',
  };
  // 0: any free port, which nobody knows beforehand
  const known = port === 0 ? [] : [own];
  return operationsPort === null
    ? [{ url: '/', description: 'Where this document was read.' }, ...known]
    : known;
}

function urlOf(scheme: string, host: string, port: number): string {
  const reached = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${scheme}://${isIPv6(reached) ? `[${reached}]` : reached}:${port}`;
}
