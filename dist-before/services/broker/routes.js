import { consumerRoutes } from './consumer-routes.js';
import { produceRoutes } from './produce-routes.js';
import { readRoutes } from './read-routes.js';
export const routes = [...produceRoutes, ...readRoutes, ...consumerRoutes];
//# sourceMappingURL=routes.js.map