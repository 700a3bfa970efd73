import type { ServiceDocumentation } from '../../http/route.js';

const written = { topic: 'greetings', partition: 0, offset: 41, timestamp: 1_767_225_600_000 };
const message = { ...written, key: 'user-7', value: 'hello', headers: [{ key: 'trace', value: 'a1' }] };
const position = { topic: 'greetings', partition: 0, offset: 42 };
const success = { result: 'Success', status: 200 };

export const documentation: ServiceDocumentation = {
  about:
    'Topics of Apache Kafka: produce, fetch, and consume as an instance of a consumer group that outlives the request.',
  names: {
    topic: 'greetings',
    message: 'hello',
    group: 'readers',
    instance: 'instance-1',
    timestamp: 'earliest',
  },
  examples: {
    'broker.produce': { body: [{ topic: 'greetings', key: 'user-7', value: 'hello' }], reply: [written] },
    'broker.produceToTopic': { body: [{ key: 'user-7', value: 'hello' }], reply: [written] },
    'broker.produceFromPath': { query: { key: 'user-7' }, reply: written },
    'broker.webhook': { query: { topic: 'greetings' }, body: { event: 'signup' }, reply: [written] },
    'broker.fetch': {
      body: { topic: 'greetings', partition: 0, offset: 41, timeout: 1_000 },
      reply: [message],
    },
    'broker.topics': { reply: { greetings: 3 } },
    'broker.committed': { body: [{ topic: 'greetings', partition: 0 }], reply: [position] },
    'broker.offsets': { body: [{ topic: 'greetings', partition: 0 }], reply: [{ ...position, offset: 0 }] },
    'broker.consume': {
      headers: { 'broker-auto-offset-reset': 'earliest' },
      body: { topics: ['greetings'], timeout: 1_000, limit: 100 },
      reply: [message],
    },
    'broker.consumeTopic': {
      headers: { 'broker-auto-offset-reset': 'earliest' },
      query: { timeout: '1000' },
      reply: [message],
    },
    'broker.commit': { body: [position], reply: success },
    'broker.deleteConsumer': { reply: success },
    'broker.consumers': {
      reply: [
        {
          name: 'readers',
          instances: [{ name: 'instance-1', topics: [{ topic: 'greetings', partitions: [0, 1, 2] }] }],
        },
      ],
    },
    'broker.groups': {
      query: { limit: '100' },
      reply: {
        groups: [{ name: 'billing', state: 'Stable', members: [{ client: 'portico', host: '/10.0.0.7' }] }],
      },
    },
    'broker.lag': { query: { topic: 'greetings' }, reply: [{ ...position, end: 50, lag: 8 }] },
    'broker.seek': {
      body: [{ topic: 'greetings', offset: 'earliest' }],
      reply: [{ ...position, offset: 0 }],
    },
    'broker.describeTopic': {
      reply: {
        name: 'greetings',
        partitions: [{ partition: 0, leader: 1, replicas: [1], inSync: [1] }],
        config: { 'retention.ms': '604800000' },
      },
    },
    'broker.createTopic': {
      body: { partitions: 3, config: { 'cleanup.policy': 'compact' } },
      reply: success,
    },
    'broker.changeTopic': { body: { partitions: 6, config: { 'cleanup.policy': null } }, reply: success },
    'broker.deleteTopic': { reply: success },
  },
};
