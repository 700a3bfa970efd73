import type { DocumentedService } from '../http/operations/openapi.js';
import { routes } from './api/routes.js';
import { errorBody } from './api/schemas.js';
import { documentation } from './documentation.js';

/** The console's own routes, for the documentation. */
export function describeConsole(): DocumentedService {
  return {
    name: 'console',
    basePath: '/console/api',
    auth: 'bearer',
    error: errorBody,
    documentation,
    routes,
  };
}
