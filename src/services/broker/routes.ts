import type { Route } from '../../http/route.js';
import { consumerRoutes } from './api/consumer-routes.js';
import { groupRoutes } from './api/group-routes.js';
import { offsetRoutes } from './api/offset-routes.js';
import { produceRoutes } from './api/produce-routes.js';
import { readRoutes } from './api/read-routes.js';
import { topicRoutes } from './api/topic-routes.js';
import { webhookRoutes } from './api/webhook.js';
import type { BrokerDeps } from './deps.js';

export const routes: readonly Route<BrokerDeps>[] = [
  ...produceRoutes,
  ...webhookRoutes,
  ...readRoutes,
  ...offsetRoutes,
  ...consumerRoutes,
  ...groupRoutes,
  ...topicRoutes,
];
