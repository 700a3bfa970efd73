import { z } from 'zod';
import { adminSettings } from '../access/settings.js';
import { consoleSettings } from '../console/settings.js';
import { httpSettings } from '../http/settings.js';
import { type SettingLeaf, settingLeaves } from '../lib/settings/settings-tree.js';
import { type TraceSettings, traceSettings } from '../lib/traces/trace-settings.js';
import { services } from '../services/index.js';
import type { Service, ServiceConfig } from '../services/service.js';

export const ENVIRONMENT_PREFIX = 'PORTICO_';

const logSettings = z.strictObject({
  level: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('Least severe level that is logged.'),
});

/** The configuration's schema: `http`, `log`, `admin` and one section a service. */
export const configSchema = z.strictObject({
  http: httpSettings.prefault({}).describe('The HTTP front itself.'),
  log: logSettings.prefault({}).describe('JSON lines on standard output.'),
  console: consoleSettings.prefault({}).describe('The console in the browser.'),
  traces: traceSettings.prefault({}).describe('Traces by OpenTelemetry.'),
  admin: adminSettings.prefault({}).describe('Tokens made at run time, and the audit log.'),
  ...Object.fromEntries(services.map((service) => [service.name, service.config.prefault({} as never)])),
});

export interface Config {
  readonly http: z.output<typeof httpSettings>;
  readonly log: z.output<typeof logSettings>;
  readonly console: z.output<typeof consoleSettings>;
  readonly traces: TraceSettings;
  readonly admin: z.output<typeof adminSettings>;
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

/** Backends that may keep what the gateway itself must remember, the better first. */
const STORES = ['postgres', 'redis'];

/**
 * Where tokens made at run time are kept.
 * @returns `null`: in a backend whose address is not there yet; `undefined`: nowhere
 */
export function accessStoreUrl(config: Config): string | null | undefined {
  if (config.admin.storeUrl !== null) return config.admin.storeUrl;
  const stores = enabledServices(config).flatMap(({ service, section }) => service.store?.(section) ?? []);
  const best = STORES.flatMap((name) => stores.filter(({ backend }) => backend === name));
  return (best.find(({ url }) => url !== null) ?? best[0])?.url;
}
