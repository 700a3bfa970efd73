import type { DocumentedService } from '../http/operations/openapi.js';
import { services } from './index.js';
import type { Service, ServiceConfig } from './service.js';

interface Configured {
  readonly service: Service;
  readonly section: ServiceConfig;
}

/** Every service as the OpenAPI document shows it, without a configuration: at the first mount of the default one. */
export function describeServices(configured: readonly Configured[] = defaults()): DocumentedService[] {
  return configured.map(({ service, section }) => {
    const mount = service.mounts(section)[0];
    return {
      name: service.name,
      basePath: mount?.path ?? `/${service.name}`,
      auth: mount?.auth.kind ?? 'bearer',
      error: service.error,
      routes: service.routes,
      documentation: service.documentation,
    };
  });
}

function defaults(): Configured[] {
  return services.map((service) => ({ service, section: service.config.parse({}) }));
}

/** The card of every service by its name, as JSON. */
export function cardsOfServices(): string {
  return `${JSON.stringify(Object.fromEntries(services.map(({ name, card }) => [name, card])), null, 2)}\n`;
}
