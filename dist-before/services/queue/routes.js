import { HttpError } from '../../http/errors.js';
import { jsonRoute } from '../../http/route.js';
import { acceptMessage } from './accept.js';
import { Controls } from './control-headers.js';
import { checkDestination, cutTarget } from './destination.js';
import { newMessageId } from './message.js';
import { readPublishOptions } from './publish-options.js';
import { publishReply, quotaReply } from './schemas.js';
const URL_GROUP_NAME = /^[A-Za-z0-9._-]+$/;
/** Reads a publish. @throws HttpError 400, 404 */
function messageOf(request, { config, guard, now: clock }) {
    const { destination, settings } = cutTarget(request.target);
    if (destination === '')
        throw new HttpError('invalid_request', 'The destination is missing: /v2/publish/{url}.');
    if (URL_GROUP_NAME.test(destination))
        throw new HttpError('not_found', `${destination} is neither a URL (http:// or https://) nor a known URL group.`);
    checkDestination(destination, 'The destination', guard);
    const controls = new Controls(request.headers, settings);
    const now = clock();
    const options = readPublishOptions(controls, request.headers, { limits: config, guard, now });
    return {
        id: newMessageId(now),
        prefix: controls.prefix ?? config.headerPrefix,
        url: destination,
        body: request.body,
        notBefore: now + options.delayMs,
        createdAt: now,
        ...options,
    };
}
const publish = {
    kind: 'raw',
    prefix: true,
    operationId: 'queue.publish',
    summary: 'Takes a message for the URL in the path and delivers it at least once. Answers when the message is safe in Postgres and RabbitMQ.',
    methods: ['POST'],
    path: '/v2/publish',
    reply: publishReply,
    errors: [400, 401, 404, 413, 503],
    handle: async (request, _context, deps) => {
        const message = messageOf(request, deps);
        await acceptMessage(message, deps.accept);
        return { status: 200, body: JSON.stringify({ messageId: message.id, url: message.url }) };
    },
};
const quota = jsonRoute()({
    operationId: 'queue.quota',
    summary: 'The limits of this queue service.',
    methods: ['GET'],
    path: '/v1/quota',
    request: {},
    reply: quotaReply,
    errors: [401],
    handle: async (_input, _context, { config }) => ({
        maxTopics: 0,
        maxEndpointsPerTopic: 0,
        maxMessageSize: config.maxMessageSize,
        maxRetries: config.maxRetries,
        maxSchedules: 0,
        maxRequestsPerDay: 0,
        retention: config.retention,
        timeout: config.timeout,
        maxDelay: config.maxDelay,
    }),
});
export const queueRoutes = [publish, quota];
//# sourceMappingURL=routes.js.map