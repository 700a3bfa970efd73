import type { ServiceDocumentation } from '../../http/route.js';

const event = 'data: message,news,hello\n\n';

export const documentation: ServiceDocumentation = {
  about:
    'The commands of Redis or Valkey. A database has a token that may do everything and one that may only read.',
  names: { channel: 'news', pattern: 'news:*', command: 'GET', arguments: 'greeting' },
  examples: {
    'kv.pipeline': {
      body: [
        ['SET', 'greeting', 'hello'],
        ['INCR', 'greeting'],
      ],
      reply: [{ result: 'OK' }, { error: 'ERR value is not an integer or out of range' }],
    },
    'kv.transaction': {
      body: [
        ['SET', 'stock', 5],
        ['DECR', 'stock'],
      ],
      reply: [{ result: 'OK' }, { result: 4 }],
    },
    'kv.command': { body: ['SET', 'greeting', 'hello', 'EX', 60], reply: { result: 'OK' } },
    'kv.subscribe': { reply: event },
    'kv.psubscribe': { reply: 'data: pmessage,news:*,news:sport,hello\n\n' },
    'kv.monitor': { reply: 'data: "1700000000.000001 [0 127.0.0.1:1] \\"GET\\" \\"greeting\\""\n\n' },
    'kv.path': { reply: { result: 'hello' } },
  },
};
