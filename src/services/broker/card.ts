import type { HeaderAlias } from '../../http/headers.js';
import type { ContractProbe, ServiceCard } from '../service.js';

export const card: ServiceCard = {
  needs: ['kafka'],
  credentials: [
    {
      variable: 'PORTICO_BROKER_USERNAME',
      made: { by: 'start', as: 'name', prefix: 'portico-' },
      inTests: 'portico-test',
      otherNames: ['UPSTASH_KAFKA_REST_USERNAME'],
    },
    {
      variable: 'PORTICO_BROKER_PASSWORD',
      made: { by: 'start', as: 'secret', prefix: '' },
      inTests: 'portico-test-broker-0123456789',
      otherNames: ['UPSTASH_KAFKA_REST_PASSWORD'],
    },
  ],
  urlNames: ['UPSTASH_KAFKA_REST_URL'],
  // a first topic, so that the README's lines work: Kafka makes none by itself
  variables: { PORTICO_BROKER_TOPICS: 'greetings:12' },
};

export const headerAlias: HeaderAlias = { own: 'broker-', sent: 'kafka-' };

export const probe: ContractProbe = {
  request: { method: 'POST', path: '/fetch', body: '{"topic":"contract-none","partition":0}' },
  takesBody: '/produce/any',
  apart: {},
  limited: { clusters: [{ bodyLimit: 65_536 }] },
};
