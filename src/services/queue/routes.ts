import { jsonRoute, type RawReply, type Route, type RouteContext } from '../../http/route.js';
import { batchRoute } from './api/batch-routes.js';
import { deadLetterRoutes } from './api/dead-letter-routes.js';
import { deadRunRoutes } from './api/dead-run-routes.js';
import { destinationRoutes } from './api/destination-routes.js';
import { eventRoutes } from './api/event-routes.js';
import { flowControlRoutes } from './api/flow-control-routes.js';
import { keyRoutes } from './api/key-routes.js';
import { messageRoutes } from './api/message-routes.js';
import { orderedQueueRoutes } from './api/ordered-queue-routes.js';
import { publishRoutes } from './api/publish-routes.js';
import { scheduleRoutes } from './api/schedule-routes.js';
import { urlGroupRoutes } from './api/url-group-routes.js';
import { workflowEventRoutes } from './api/workflow-event-routes.js';
import { workflowLogRoutes } from './api/workflow-log-routes.js';
import { workflowRunRoutes } from './api/workflow-run-routes.js';
import { workflowTriggerRoutes } from './api/workflow-trigger-routes.js';
import type { QueueDeps } from './deps.js';
import { unavailable } from './errors.js';
import { quotaReply } from './schemas.js';

const quota = jsonRoute<QueueDeps>()({
  operationId: 'queue.quota',
  summary: 'The limits of this queue service.',
  methods: ['GET'],
  path: '/v1/quota',
  request: {},
  reply: quotaReply,
  errors: [401],
  handle: async (_input, _context, { config }) => ({
    maxTopics: config.maxTopics,
    maxEndpointsPerTopic: config.maxEndpointsPerTopic,
    maxMessageSize: config.maxMessageSize,
    maxRetries: config.maxRetries,
    maxSchedules: config.maxSchedules,
    maxRequestsPerDay: config.maxRequestsPerDay,
    retention: config.retention,
    timeout: config.timeout,
    maxDelay: config.maxDelay,
  }),
});

/** A route that says what a failure of Postgres means. */
function guarded(route: Route<QueueDeps>): Route<QueueDeps> {
  const handle = async (input: never, context: RouteContext, deps: QueueDeps): Promise<unknown> => {
    try {
      return await (route.handle as (...all: unknown[]) => Promise<RawReply>)(input, context, deps);
    } catch (error) {
      throw unavailable(error);
    }
  };
  return { ...route, handle } as Route<QueueDeps>;
}

export const routes: readonly Route<QueueDeps>[] = [
  ...publishRoutes,
  batchRoute,
  ...messageRoutes,
  ...deadLetterRoutes,
  ...eventRoutes,
  ...urlGroupRoutes,
  ...scheduleRoutes,
  ...orderedQueueRoutes,
  ...flowControlRoutes,
  ...destinationRoutes,
  ...keyRoutes,
  ...workflowRunRoutes,
  ...workflowEventRoutes,
  ...deadRunRoutes,
  ...workflowTriggerRoutes,
  ...workflowLogRoutes,
  quota,
].map(guarded);
