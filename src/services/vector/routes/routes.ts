import type { JsonRoute } from '../../../http/route.js';
import { namespaceRoutes } from './namespace-routes.js';
import { queryRoutes } from './query-routes.js';
import { readRoutes } from './read-routes.js';
import type { VectorDeps } from './route-kit.js';
import { writeRoutes } from './write-routes.js';

/** Every route of an index. */
export const routes: readonly JsonRoute<VectorDeps>[] = [
  ...writeRoutes,
  ...queryRoutes,
  ...readRoutes,
  ...namespaceRoutes,
];
