import { bindRoutes } from '../../http/route.js';
import { openVectorDatabase } from './client.js';
import { formatError } from './errors.js';
import { PreparedIndex } from './prepared-index.js';
import { routes } from './routes.js';
import { errorReply, vectorSettings } from './schemas.js';
/** Vector indexes on Postgres with pgvector. */
export const vector = {
    name: 'vector',
    config: vectorSettings,
    routes,
    formatError,
    error: errorReply,
    secrets: ({ indexes }) => indexes.flatMap(({ token, readOnlyToken }, i) => [
        { key: `vector.indexes[${i}].token`, value: token },
        ...(readOnlyToken === null
            ? []
            : [{ key: `vector.indexes[${i}].readOnlyToken`, value: readOnlyToken }]),
    ]),
    backends: ({ database }) => [{ name: 'postgres', given: database.url !== null }],
    mounts: ({ indexes }) => indexes.map(mountOf),
    open,
};
function mountOf({ name, path, port, token, readOnlyToken }) {
    const credentials = [
        ...(token === null ? [] : [{ token, principal: { name: 'token', access: 'full' } }]),
        ...(readOnlyToken === null
            ? []
            : [{ token: readOnlyToken, principal: { name: 'read-only token', access: 'read' } }]),
    ];
    return { name, path, port, auth: { kind: 'bearer', credentials } };
}
function open(config, { log, lifecycle }) {
    const { url, schema } = config.database;
    if (url === null)
        throw new Error('vector.database.url is missing');
    const database = openVectorDatabase({ ...config.database, url }, log, lifecycle);
    return config.indexes.map((settings) => {
        const index = new PreparedIndex({ database, schema, settings, log, lifecycle });
        return {
            ...mountOf(settings),
            routes: bindRoutes(routes, { index }),
            formatError,
            bodyLimit: settings.bodyLimit,
            timeoutMs: settings.timeoutMs,
            backends: [{ name: 'postgres', check: () => index.check() }],
        };
    });
}
//# sourceMappingURL=index.js.map