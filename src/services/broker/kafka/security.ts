import { tlsOptions } from '../../../lib/tls.js';
import type { ClusterSettings } from '../settings.js';
import type { KafkaSecurity } from './kafka-connection.js';

/** TLS and SASL of a cluster. @throws Error when a certificate can no longer be read */
export function securityOf({ tls, sasl }: Pick<ClusterSettings, 'tls' | 'sasl'>): KafkaSecurity {
  const { mechanism, username, password } = sasl;
  return {
    tls: tls.enabled ? tlsOptions(tls) : undefined,
    sasl:
      mechanism === null || username === null || password === null
        ? undefined
        : { mechanism, username, password },
  };
}
