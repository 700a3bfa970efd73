import type { JsonRoute } from '../../http/route.js';
import { namespaceRoutes } from './api/namespace-routes.js';
import { queryRoutes } from './api/query-routes.js';
import { readRoutes } from './api/read-routes.js';
import { writeRoutes } from './api/write-routes.js';
import type { VectorDeps } from './deps.js';

/** Every route of an index. */
export const routes: readonly JsonRoute<VectorDeps>[] = [
  ...writeRoutes,
  ...queryRoutes,
  ...readRoutes,
  ...namespaceRoutes,
];
