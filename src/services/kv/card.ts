import type { HeaderAlias } from '../../http/headers.js';
import type { ContractProbe, ServiceCard } from '../service.js';

export const card: ServiceCard = {
  needs: ['redis'],
  credentials: [
    {
      variable: 'PORTICO_KV_TOKEN',
      made: { by: 'gateway', principal: 'standard' },
      inTests: 'portico-test-kv-0123456789',
      otherNames: ['UPSTASH_REDIS_REST_TOKEN', 'KV_REST_API_TOKEN'],
    },
    {
      variable: 'PORTICO_KV_READONLY_TOKEN',
      made: { by: 'gateway', principal: 'read-only' },
      inTests: 'portico-test-kv-readonly-0123456789',
      otherNames: ['KV_REST_API_READ_ONLY_TOKEN'],
    },
  ],
  urlNames: ['UPSTASH_REDIS_REST_URL', 'KV_REST_API_URL'],
  // nobody else has scripts there
  variables: { PORTICO_KV_KILL_SCRIPTS: 'true' },
};

export const headerAlias: HeaderAlias = { own: 'service-', sent: 'upstash-' };

export const probe: ContractProbe = {
  request: { method: 'POST', path: '', body: '["GET","contract:none"]' },
  takesBody: '',
  apart: {},
  limited: { databases: [{ bodyLimit: 65_536 }] },
};
