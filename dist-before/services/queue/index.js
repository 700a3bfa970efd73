import { errorSchema, formatError } from './errors.js';
import { queueRoutes } from './routes.js';
import { openQueue } from './runtime.js';
import { queueConfigSchema } from './schemas.js';
/** Messages to any URL: published once, delivered at least once, through RabbitMQ with Postgres as memory. */
export const queue = {
    name: 'queue',
    config: queueConfigSchema,
    routes: queueRoutes,
    formatError,
    error: errorSchema,
    secrets: ({ token, currentSigningKey, nextSigningKey }) => [
        { key: 'queue.token', value: token },
        { key: 'queue.currentSigningKey', value: currentSigningKey },
        { key: 'queue.nextSigningKey', value: nextSigningKey },
    ],
    backends: ({ rabbitmqUrl, databaseUrl }) => [
        { name: 'rabbitmq', given: rabbitmqUrl !== null },
        { name: 'postgres', given: databaseUrl !== null },
    ],
    mounts: (config) => [mountOf(config)],
    open: (config, runtime) => [{ ...mountOf(config), ...openQueue(config, runtime) }],
};
function mountOf({ path, port, token }) {
    return { name: 'default', path, port, auth: authOf(token) };
}
/** The quota's documents send the token without `Bearer`; webhook senders can only put it into the query. */
function authOf(token) {
    return {
        kind: 'bearer',
        credentials: token === null ? [] : [{ token, principal: { name: 'queue', access: 'full' } }],
        queryKey: 'qstash_token',
        bareToken: true,
    };
}
//# sourceMappingURL=index.js.map