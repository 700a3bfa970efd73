import type { ContractProbe, ServiceCard } from '../service.js';

export const card: ServiceCard = {
  needs: ['postgres', 'pgvector'],
  credentials: [
    {
      variable: 'PORTICO_VECTOR_TOKEN',
      made: { by: 'start', as: 'secret', prefix: '' },
      inTests: 'portico-test-vector-0123456789',
      otherNames: ['UPSTASH_VECTOR_REST_TOKEN'],
    },
    {
      variable: 'PORTICO_VECTOR_READONLY_TOKEN',
      made: { by: 'start', as: 'secret', prefix: '' },
      inTests: 'portico-test-vector-readonly-0123456789',
      otherNames: ['UPSTASH_VECTOR_REST_READONLY_TOKEN'],
    },
  ],
  urlNames: ['UPSTASH_VECTOR_REST_URL'],
  variables: {},
};

const database = { schema: 'contract_vector' };

export const probe: ContractProbe = {
  request: { method: 'GET', path: '/info' },
  takesBody: '/upsert',
  apart: { database },
  limited: { database, indexes: [{ bodyLimit: 65_536 }] },
};
