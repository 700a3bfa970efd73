import type { Service } from '../service.js';
import { card, probe } from './card.js';
import { documentation } from './documentation.js';
import { errorSchema, formatError } from './errors.js';
import { mountOf } from './mount.js';
import { resetQueue } from './reset.js';
import { routes } from './routes.js';
import { openQueue } from './runtime.js';
import { DEV_MODE, type QueueSettings, queueSettings } from './settings.js';

/** Messages to any URL: published once, delivered at least once, through RabbitMQ with Postgres as memory. */
export const queue: Service<QueueSettings> = {
  name: 'queue',
  config: queueSettings,
  routes,
  documentation,
  formatError,
  error: errorSchema,
  card,
  probe,
  exposedHeaders: [],
  secrets: ({ devMode, token, readOnlyToken, currentSigningKey, nextSigningKey }) => [
    { key: devMode ? 'queue.devMode' : 'queue.token', value: token, isPublic: token === DEV_MODE.token },
    ...(readOnlyToken === null ? [] : [{ key: 'queue.readOnlyToken', value: readOnlyToken }]),
    { key: 'queue.currentSigningKey', value: currentSigningKey },
    { key: 'queue.nextSigningKey', value: nextSigningKey },
  ],
  addresses: ({ rabbitmqUrl, databaseUrl }) => [
    { backend: 'rabbitmq', key: 'queue.rabbitmqUrl', given: rabbitmqUrl !== null },
    { backend: 'postgres', key: 'queue.databaseUrl', given: databaseUrl !== null },
  ],
  store: ({ databaseUrl: url }) => ({ backend: 'postgres', url }),
  mounts: (config) => [mountOf(config)],
  open: openQueue,
  reset: resetQueue,
};
