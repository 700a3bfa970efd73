import { brokerRoute } from './deps.js';
import * as schemas from './schemas.js';
const errors = [400, 401, 403, 404, 413, 503, 504];
export const produceRoutes = [
    brokerRoute({
        operationId: 'broker.produce',
        summary: 'Writes one record or several, each to the topic that it names.',
        methods: ['GET', 'POST'],
        path: '/produce',
        request: { body: schemas.recordsWithTopicBody },
        reply: schemas.metadataListReply,
        errors,
        handle: ({ body }, { signal }, { producer }) => producer.produce(body, signal),
    }),
    brokerRoute({
        operationId: 'broker.produceToTopic',
        summary: 'Writes one record or several to a topic.',
        methods: ['GET', 'POST'],
        path: '/produce/:topic',
        request: { params: schemas.topicParams, body: schemas.recordsBody },
        reply: schemas.metadataListReply,
        errors,
        handle: ({ params: { topic }, body }, { signal }, { producer }) => producer.produce(body.map((record) => ({ ...record, topic })), signal),
    }),
    brokerRoute({
        operationId: 'broker.produceFromPath',
        summary: 'Writes the text in the path as one record.',
        methods: ['GET'],
        path: '/produce/:topic/:message',
        request: { params: schemas.messageParams, query: schemas.keyQuery },
        reply: schemas.metadataReply,
        errors,
        handle: async ({ params: { topic, message }, query: { key } }, { signal }, { producer }) => {
            const [written] = await producer.produce([{ topic, value: message, key }], signal);
            if (written === undefined)
                throw new Error('one record has one result');
            return written;
        },
    }),
];
//# sourceMappingURL=produce-routes.js.map