import { isConsoleServed } from '../console/settings.js';
import type { BackendName } from '../services/service.js';
import type { LoadedConfig } from './load.js';
import { accessStoreUrl, type Config, configLeaves, enabledServices } from './schema.js';
import type { UnservedService } from './unserved-services.js';

/** What the start scripts ask of a configuration before there is a gateway. */
export interface CheckReport {
  readonly url: string;
  /** Where `/readyz` and `/metrics` are. */
  readonly operationsUrl: string;
  /** Where the console is; null: nowhere. */
  readonly consoleUrl: string | null;
  /** All that the gateway listens on, those of its own for an instance included. */
  readonly ports: readonly number[];
  /** Those that are not switched off; the start scripts bring the backends that have no address. */
  readonly services: readonly string[];
  /** Those of them that a gateway would leave out if nobody added an address. */
  readonly unserved: readonly UnservedService[];
  /** Base URL of each service's first instance. */
  readonly urls: Readonly<Record<string, string>>;
  /** `needed`: used, and no address is configured. */
  readonly backends: Readonly<Record<BackendName, 'needed' | 'given' | 'unused'>>;
  /**
   * Short variables whose key has a value other than its default already. The start scripts must not set them: a variable wins over the file,
   * so a token of theirs would replace the user's own.
   */
  readonly set: readonly string[];
  /** Whether there is, or will be, a backend that can keep tokens made at run time. */
  readonly keepsTokens: boolean;
}

function setVariables(config: Config): string[] {
  return configLeaves().flatMap(({ path, env, byDefault }) => {
    if (env === undefined) return [];
    let value: unknown = { ...config, ...config.services };
    for (const step of path) value = (value as Record<string, unknown> | null)?.[step === '#' ? '0' : step];
    const own = value !== undefined && JSON.stringify(value) !== JSON.stringify(byDefault);
    return own ? [env] : [];
  });
}

/** What a client on this machine connects to: an address that stands for every interface is one to listen at. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  const address = host === '::' ? '::1' : host;
  return address.includes(':') ? `[${address}]` : address;
}

export function checkReport({ config, unserved }: LoadedConfig): CheckReport {
  const { port, operationsPort } = config.http;
  const host = reachable(config.http.host);
  const scheme = config.http.tls.cert === null ? 'http' : 'https';
  const url = `${scheme}://${host}:${port}`;
  const enabled = enabledServices(config);
  const backends: Record<BackendName, 'needed' | 'given' | 'unused'> = {
    redis: 'unused',
    postgres: 'unused',
    kafka: 'unused',
    rabbitmq: 'unused',
  };
  for (const { service, section } of enabled) {
    for (const { backend, given } of service.addresses(section)) {
      if (!given) backends[backend] = 'needed';
      else if (backends[backend] === 'unused') backends[backend] = 'given';
    }
  }
  const own = enabled.flatMap(({ service, section }) => service.mounts(section).map((mount) => mount.port));
  const urls = enabled.map(({ service, section }) => [
    service.name,
    `${url}${service.mounts(section)[0]?.path ?? ''}`.replace(/\/$/, ''),
  ]);
  return {
    url,
    operationsUrl: `${scheme}://${host}:${operationsPort ?? port}`,
    consoleUrl: isConsoleServed(config.console, config.http.host) ? `${url}/console/` : null,
    ports: [port, operationsPort, ...own].filter((one) => one !== null),
    services: enabled.map(({ service }) => service.name),
    unserved,
    urls: Object.fromEntries(urls),
    backends,
    set: setVariables(config),
    keepsTokens: accessStoreUrl(config) !== undefined,
  };
}
