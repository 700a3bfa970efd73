import { type Config, configLeaves, enabledServices } from './config.js';
import type { BackendName } from './services/service.js';

/** What the start scripts ask of a configuration before there is a gateway. */
export interface CheckReport {
  readonly url: string;
  readonly services: readonly string[];
  /** Base URL of each service's first instance. */
  readonly urls: Readonly<Record<string, string>>;
  /** `needed`: used, and no address is configured. */
  readonly backends: Readonly<Record<BackendName, 'needed' | 'given' | 'unused'>>;
  /**
   * Short variables whose key has a value other than its default already. The start scripts must not set them: a variable wins over the file,
   * so a token of theirs would replace the user's own.
   */
  readonly set: readonly string[];
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

export function checkReport(config: Config): CheckReport {
  const host = config.http.host.includes(':') ? `[${config.http.host}]` : config.http.host;
  const url = `http://${host}:${config.http.port}`;
  const enabled = enabledServices(config);
  const backends: Record<BackendName, 'needed' | 'given' | 'unused'> = {
    redis: 'unused',
    postgres: 'unused',
    kafka: 'unused',
    rabbitmq: 'unused',
  };
  for (const { service, section } of enabled) {
    for (const { name, given } of service.backends(section)) {
      if (!given) backends[name] = 'needed';
      else if (backends[name] === 'unused') backends[name] = 'given';
    }
  }
  const urls = enabled.map(({ service, section }) => [
    service.name,
    `${url}${service.mounts(section)[0]?.path ?? ''}`.replace(/\/$/, ''),
  ]);
  return {
    url,
    services: enabled.map(({ service }) => service.name),
    urls: Object.fromEntries(urls),
    backends,
    set: setVariables(config),
  };
}
