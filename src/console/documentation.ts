import type { ServiceDocumentation } from '../http/route.js';

const unlocked = { service: 'kv', name: 'default', path: '/kv' };

export const documentation: ServiceDocumentation = {
  about: 'What the console in the browser needs beside the services.',
  names: {},
  examples: {
    'console.access': { reply: { unlocked: [{ ...unlocked, access: 'full', principal: 'standard' }] } },
    'console.createCode': {
      body: { credentials: ['Bearer 0123456789abcdef'] },
      reply: { code: 'Zm9yIG9uZSBsaW5rLCBmb3Igb25lIGhvdXI', expiresInSeconds: 3_600 },
    },
    'console.signIn': {
      body: { code: 'Zm9yIG9uZSBsaW5rLCBmb3Igb25lIGhvdXI' },
      reply: { credentials: ['Bearer 0123456789abcdef'] },
    },
    'console.health': {
      reply: { services: [{ service: 'kv', instance: 'default', backend: 'redis', up: true }] },
    },
    'console.series': {
      reply: {
        stepMs: 5_000,
        firstStep: 359_112_000,
        inFlight: [0, 2],
        services: {
          kv: {
            requests: [0, 120],
            clientErrors: [0, 0],
            failures: [0, 0],
            p50: [null, 0.0004],
            p99: [null, 0.002],
          },
        },
      },
    },
  },
};
