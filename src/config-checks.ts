import { isIPv6 } from 'node:net';
import type { Config, EnabledService } from './config.js';
import type { Service, ServiceConfig } from './services/service.js';

/**
 * What no schema of one key can see, a line each.
 * @param complete also asks for tokens, and an address for every backend in use
 */
export function crossChecks(config: Config, enabled: readonly EnabledService[], complete: boolean): string[] {
  const problems = enabled.flatMap(({ service, section }) => [
    ...repeatedNames(service, section),
    ...repeatedCredentials(service, section),
  ]);
  problems.push(...repeatedPlaces(config, enabled));
  if (!complete) return problems;
  const open = !isLoopback(config.http.host);
  const tooWeak = `too weak for a gateway that listens on ${config.http.host}: ${STRONG}`;
  const { metricsToken } = config.http;
  if (open && metricsToken !== null && isWeak(metricsToken)) problems.push(`http.metricsToken: ${tooWeak}`);
  for (const { service, section } of enabled) {
    for (const { key, value } of service.secrets(section)) {
      if (value === null)
        problems.push(`${key}: a token is missing; set it in the file or by its environment variable`);
      else if (open && isWeak(value)) problems.push(`${key}: ${tooWeak}`);
    }
    if (section.missing !== null) continue;
    for (const { name, given } of service.backends(section)) {
      if (!given)
        problems.push(
          `${service.name}: no address for ${name}; set it in the file or by its environment variable`,
        );
    }
  }
  return problems;
}

function repeatedNames(service: Service, section: ServiceConfig): string[] {
  const names = service.mounts(section).map((mount) => mount.name);
  return repeated(names).map((name) => `${service.name}: two entries have the name ${name}`);
}

/** Which of the two a request belongs to could not be told. */
function repeatedCredentials(service: Service, section: ServiceConfig): string[] {
  return service.mounts(section).flatMap(({ name, auth }) => {
    const names =
      auth.kind === 'bearer'
        ? auth.credentials.map(({ token }) => token)
        : auth.credentials.map(({ username }) => username);
    const what = auth.kind === 'bearer' ? 'tokens' : 'user names';
    return repeated(names).length === 0 ? [] : [`${service.name}: two ${what} of ${name} are the same`];
  });
}

/** A service mounted there would answer in their place. */
const PAGES = /^\/(livez|readyz|metrics|openapi\.json)(\/|$)/;

function repeatedPlaces(config: Config, enabled: readonly EnabledService[]): string[] {
  const mounts = enabled.flatMap(({ service, section }) => service.mounts(section));
  const ports = [config.http.port, config.http.operationsPort, ...mounts.map((mount) => mount.port)];
  return [
    ...mounts
      .filter((mount) => PAGES.test(mount.path))
      .map(({ path }) => `the path ${path} belongs to the gateway's own pages`),
    ...repeated(mounts.map((mount) => mount.path)).map(
      (path) => `two entries are served at the path ${path}`,
    ),
    ...repeated(ports.filter((port) => port !== null && port !== 0)).map(
      (port) => `two entries use the port ${port}`,
    ),
  ];
}

function repeated<T>(values: readonly T[]): T[] {
  return [...new Set(values.filter((value, i) => values.indexOf(value) !== i))];
}

function isLoopback(host: string): boolean {
  return (
    host === 'localhost' || /^127\.\d+\.\d+\.\d+$/.test(host) || (isIPv6(host) && /^(0*:)*:?0*1$/.test(host))
  );
}

const STRONG = 'expected at least 24 characters, 10 of them different';

function isWeak(token: string): boolean {
  return token.length < 24 || new Set(token).size < 10;
}
