import type { DocumentedService } from '../http/operations/openapi.js';
import { services } from './index.js';

/** Every service as the OpenAPI document shows it: at the first mount of its default configuration. */
export function describeServices(): DocumentedService[] {
  return services.map((service) => {
    const mount = service.mounts(service.config.parse({}))[0];
    return {
      name: service.name,
      basePath: mount?.path ?? `/${service.name}`,
      auth: mount?.auth.kind ?? 'bearer',
      error: service.error,
      routes: service.routes,
    };
  });
}

/** The card of every service by its name, as JSON. */
export function cardsOfServices(): string {
  return `${JSON.stringify(Object.fromEntries(services.map(({ name, card }) => [name, card])), null, 2)}\n`;
}
