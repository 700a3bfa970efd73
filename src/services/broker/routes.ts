import type { Route } from '../../http/route.js';
import { consumerRoutes } from './consumer-routes.js';
import type { BrokerDeps } from './deps.js';
import { produceRoutes } from './produce-routes.js';
import { readRoutes } from './read-routes.js';

export const routes: readonly Route<BrokerDeps>[] = [...produceRoutes, ...readRoutes, ...consumerRoutes];
