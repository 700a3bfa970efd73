import type { AuthScheme } from '../../http/route.js';
import type { Mount, Service } from '../service.js';
import { card, probe } from './card.js';
import { errorSchema, formatError } from './errors.js';
import { queueRoutes } from './routes.js';
import { openQueue } from './runtime.js';
import { type QueueConfig, queueConfigSchema } from './schemas.js';

/** Messages to any URL: published once, delivered at least once, through RabbitMQ with Postgres as memory. */
export const queue: Service<QueueConfig> = {
  name: 'queue',
  config: queueConfigSchema,
  routes: queueRoutes,
  formatError,
  error: errorSchema,
  card,
  probe,
  exposedHeaders: [],
  secrets: ({ token, readOnlyToken, currentSigningKey, nextSigningKey }) => [
    { key: 'queue.token', value: token },
    ...(readOnlyToken === null ? [] : [{ key: 'queue.readOnlyToken', value: readOnlyToken }]),
    { key: 'queue.currentSigningKey', value: currentSigningKey },
    { key: 'queue.nextSigningKey', value: nextSigningKey },
  ],
  addresses: ({ rabbitmqUrl, databaseUrl }) => [
    { backend: 'rabbitmq', key: 'queue.rabbitmqUrl', given: rabbitmqUrl !== null },
    { backend: 'postgres', key: 'queue.databaseUrl', given: databaseUrl !== null },
  ],
  mounts: (config) => [mountOf(config)],
  open: (config, runtime) => [{ ...mountOf(config), ...openQueue(config, runtime) }],
};

function mountOf({ path, port, token, readOnlyToken }: QueueConfig): Mount {
  return { name: 'default', path, port, auth: authOf(token, readOnlyToken) };
}

/** The quota's documents send the token without `Bearer`; webhook senders can only put it into the query. */
function authOf(token: string | null, readOnlyToken: string | null): AuthScheme {
  const known = [
    { token, principal: { name: 'queue', access: 'full' } as const },
    { token: readOnlyToken, principal: { name: 'queue read-only', access: 'read' } as const },
  ];
  return {
    kind: 'bearer',
    credentials: known.flatMap(({ token: text, principal }) =>
      text === null ? [] : [{ token: text, principal }],
    ),
    queryKey: 'qstash_token',
    bareToken: true,
  };
}
