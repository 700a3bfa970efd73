import type { Route } from '../../../http/route.js';
import type { BrokerDeps } from '../deps.js';
import { consumerRoutes } from './consumer-routes.js';
import { offsetRoutes } from './offset-routes.js';
import { produceRoutes } from './produce-routes.js';
import { readRoutes } from './read-routes.js';
import { webhookRoutes } from './webhook.js';

export const routes: readonly Route<BrokerDeps>[] = [
  ...produceRoutes,
  ...webhookRoutes,
  ...readRoutes,
  ...offsetRoutes,
  ...consumerRoutes,
];
