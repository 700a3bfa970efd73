import type { Service, ServiceConfig } from '../services/service.js';
import type { Config, EnabledService } from './schema.js';

/** A service that nobody has switched off and that is left out because nothing says where its backends are. */
export interface UnservedService {
  readonly service: string;
  /** What would have it served, each with its environment variable. */
  readonly wants: readonly { readonly key: string; readonly variable: string }[];
}

/** What is known of a key beside its value. */
export interface KeyNames {
  /** The variable that sets it. */
  variable(key: string): string;
  /** Whether it was set by a variable that sets keys of other services as well, and so says nothing of this one. */
  isShared(key: string): boolean;
}

/**
 * The services that are left out: they lack an address, and none that they have was meant for them alone. Postgres'
 * address by `PORTICO_DATABASE_URL`, for one, does not ask for a queue where no RabbitMQ is given. One without a backend is
 * asked for by its credentials.
 */
export function unservedServices(wanted: readonly EnabledService[], names: KeyNames): UnservedService[] {
  return wanted.flatMap(({ service, section }) => {
    const addresses = service.addresses(section);
    const asking = addresses.length > 0 ? addresses : secretsOf(service, section);
    const lacking = asking.filter(({ given }) => !given);
    const isMeant = asking.some(({ key, given }) => given && !names.isShared(key));
    if (section.enabled !== null || lacking.length === 0 || isMeant) return [];
    const wants = lacking.map(({ key }) => ({ key, variable: names.variable(key) }));
    return [{ service: service.name, wants }];
  });
}

const secretsOf = (service: Service, section: ServiceConfig) =>
  service.secrets(section).map(({ key, value }) => ({ key, given: value !== null }));

/** The same configuration with those services switched off. */
export function without(config: Config, unserved: readonly UnservedService[]): Config {
  const off = unserved.map(({ service }) => [
    service,
    { ...config.services[service], enabled: false, missing: null },
  ]);
  return { ...config, services: { ...config.services, ...Object.fromEntries(off) } };
}

/** One line for people. */
export function unservedText({ service, wants }: UnservedService): string {
  return `${service} is off: no address of its backend; ${wantsText(wants)} would turn it on`;
}

export function wantsText(wants: UnservedService['wants']): string {
  return wants.map(({ key, variable }) => `${key} (${variable})`).join(' and ');
}
