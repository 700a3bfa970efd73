import { z } from 'zod';
import { consoleSettings } from '../console/settings.js';
import { httpSettings } from '../http/settings.js';
import { type SettingLeaf, settingLeaves } from '../lib/settings/settings-tree.js';
import { services } from '../services/index.js';
import type { Service, ServiceConfig } from '../services/service.js';

export const ENVIRONMENT_PREFIX = 'PORTICO_';

const logSettings = z.strictObject({
  level: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('Least severe level that is logged.'),
});

/** The configuration's schema: `http`, `log` and one section a service. */
export const configSchema = z.strictObject({
  http: httpSettings.prefault({}).describe('The HTTP front itself.'),
  log: logSettings.prefault({}).describe('JSON lines on standard output.'),
  console: consoleSettings.prefault({}).describe('The console in the browser.'),
  ...Object.fromEntries(services.map((service) => [service.name, service.config.prefault({} as never)])),
});

export interface Config {
  readonly http: z.output<typeof httpSettings>;
  readonly log: z.output<typeof logSettings>;
  readonly console: z.output<typeof consoleSettings>;
  /** Each service's section by its name. */
  readonly services: Readonly<Record<string, ServiceConfig>>;
}

/** Every key, for the table in docs/configuration.md and the check that the file mentions all. */
export function configLeaves(): SettingLeaf[] {
  return settingLeaves(configSchema);
}

/** A service with its section, where the section does not switch it off. */
export interface EnabledService {
  readonly service: Service;
  readonly section: ServiceConfig;
}

export function enabledServices(config: Config): EnabledService[] {
  return services
    .map((service) => ({ service, section: config.services[service.name] as ServiceConfig }))
    .filter(({ section }) => section.enabled !== false);
}
