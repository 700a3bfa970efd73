import { AccessToken, oauthClient } from '../../../lib/outbound/access-token.js';
import { tlsOptions } from '../../../lib/tls.js';
import type { ServiceRuntime } from '../../service.js';
import type { ClusterSettings } from '../settings.js';
import type { KafkaSecurity } from './sasl.js';

/** TLS and SASL of a cluster. @throws Error when a certificate can no longer be read */
export function securityOf(
  { tls, sasl }: Pick<ClusterSettings, 'tls' | 'sasl'>,
  { lifecycle, now }: Pick<ServiceRuntime, 'lifecycle' | 'now'>,
): KafkaSecurity {
  const { mechanism, username, password } = sasl;
  const client = oauthClient(sasl.oauth);
  const token = client && new AccessToken(client, {}, now);
  if (token !== undefined) lifecycle.onStop('broker access token', () => token.close());
  return {
    tls: tls.enabled ? tlsOptions(tls) : undefined,
    sasl:
      mechanism === null || username === null || password === null
        ? undefined
        : { mechanism, username, password },
    token,
  };
}
