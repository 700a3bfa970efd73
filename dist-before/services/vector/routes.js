import { HttpError } from '../../http/errors.js';
import { JsonText, jsonRoute } from '../../http/route.js';
import { infoReply, namespaceParams, queryBody, queryReply, upsertBody, upsertReply } from './schemas.js';
/** Clients differ in the method that they send (the npm SDK posts everything, others read by GET): the path decides. */
const METHODS = ['GET', 'POST', 'PUT', 'DELETE'];
const route = jsonRoute();
const SUCCESS = new JsonText('{"result":"Success"}');
const common = { methods: METHODS, errors: [400, 403, 422] };
const upsert = route({
    ...common,
    operationId: 'vector.upsert',
    summary: 'Stores one vector or an array of them; those that exist are replaced.',
    path: '/upsert',
    request: { body: upsertBody },
    reply: upsertReply,
    handle: async ({ body }, context, { index }) => {
        mayWrite(context);
        await (await index.ready()).upsert('', body);
        return SUCCESS;
    },
});
const upsertInNamespace = route({
    ...common,
    operationId: 'vector.upsertInNamespace',
    summary: 'The same in a namespace, which is made when missing.',
    path: '/upsert/*namespace',
    request: { params: namespaceParams, body: upsertBody },
    reply: upsertReply,
    handle: async ({ params, body }, context, { index }) => {
        mayWrite(context);
        await (await index.ready()).upsert(params.namespace, body);
        return SUCCESS;
    },
});
const query = route({
    ...common,
    operationId: 'vector.query',
    summary: 'The vectors nearest to a vector, best score first.',
    path: '/query',
    request: { body: queryBody },
    reply: queryReply,
    handle: async ({ body }, _context, { index }) => resultText(await (await index.ready()).query('', body)),
});
const queryInNamespace = route({
    ...common,
    operationId: 'vector.queryInNamespace',
    summary: 'The same in a namespace; one that does not exist is empty.',
    path: '/query/*namespace',
    request: { params: namespaceParams, body: queryBody },
    reply: queryReply,
    handle: async ({ params, body }, _context, { index }) => resultText(await (await index.ready()).query(params.namespace, body)),
});
const info = route({
    methods: METHODS,
    operationId: 'vector.info',
    summary: 'Counts, size, dimension and similarity function of the index.',
    path: '/info',
    request: {},
    reply: infoReply,
    handle: async (_input, _context, { index }) => ({ result: await (await index.ready()).info() }),
});
export const routes = [
    upsert,
    upsertInNamespace,
    query,
    queryInNamespace,
    info,
];
function resultText(json) {
    return new JsonText(`{"result":${json}}`);
}
function mayWrite({ principal }) {
    if (principal.access === 'read')
        throw new HttpError('forbidden', 'This token may only read.');
}
//# sourceMappingURL=routes.js.map