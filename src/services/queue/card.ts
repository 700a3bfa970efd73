import type { ContractProbe, ServiceCard } from '../service.js';
import { PRINCIPALS } from './mount.js';

const KEYS = '/v2/keys';

export const card: ServiceCard = {
  needs: ['postgres', 'rabbitmq'],
  credentials: [
    {
      variable: 'PORTICO_QUEUE_TOKEN',
      // @upstash/workflow makes the addresses of webhooks of it
      made: { by: 'start', as: 'account', prefix: '', principal: PRINCIPALS.full },
      inTests: 'portico-test-queue-0123456789',
      otherNames: ['QSTASH_TOKEN'],
    },
    {
      variable: 'PORTICO_QUEUE_CURRENT_SIGNING_KEY',
      made: { by: 'start', as: 'secret', prefix: 'sig_' },
      inTests: 'sig_portico-test-current-0123456789',
      otherNames: ['QSTASH_CURRENT_SIGNING_KEY'],
      toldAt: { path: KEYS, member: 'current' },
    },
    {
      variable: 'PORTICO_QUEUE_NEXT_SIGNING_KEY',
      made: { by: 'start', as: 'secret', prefix: 'sig_' },
      inTests: 'sig_portico-test-next-0123456789',
      otherNames: ['QSTASH_NEXT_SIGNING_KEY'],
      toldAt: { path: KEYS, member: 'next' },
    },
  ],
  urlNames: ['QSTASH_URL'],
  variables: {},
};

const apart = { schema: 'contract_queue', prefix: 'contract' };

export const probe: ContractProbe = {
  request: { method: 'POST', path: '/v2/publish/https://contract.invalid/', body: 'x' },
  takesBody: '/v2/publish/https://example.com/contract',
  apart,
  limited: { ...apart, maxMessageSize: 65_536 },
};
