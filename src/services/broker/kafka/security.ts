import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import type { ClusterConfig } from '../settings.js';
import type { KafkaSecurity } from './kafka-connection.js';

/** TLS and SASL of a cluster. @throws Error naming the file when a certificate cannot be read */
export function securityOf({ tls, sasl }: Pick<ClusterConfig, 'tls' | 'sasl'>): KafkaSecurity {
  const { mechanism, username, password } = sasl;
  return {
    tls: tls.enabled
      ? {
          ...(tls.ca === null ? {} : { ca: [...rootCertificates, readFileSync(tls.ca, 'utf8')] }),
          ...(tls.cert === null ? {} : { cert: readFileSync(tls.cert) }),
          ...(tls.key === null ? {} : { key: readFileSync(tls.key) }),
        }
      : undefined,
    sasl:
      mechanism === null || username === null || password === null
        ? undefined
        : { mechanism, username, password },
  };
}
