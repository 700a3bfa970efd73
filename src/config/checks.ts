import { ADMIN_PATH } from '../access/settings.js';
import { isLoopback } from '../lib/loopback.js';
import type { Service, ServiceConfig } from '../services/service.js';
import { accessStoreUrl, type Config, type EnabledService } from './schema.js';
import { type KeyNames, type UnservedService, wantsText } from './unserved-services.js';

/** What no schema of one key can see, a line each. */
export function crossChecks(config: Config, enabled: readonly EnabledService[]): string[] {
  const problems = enabled.flatMap(({ service, section }) => [
    ...repeatedNames(service, section),
    ...repeatedCredentials(service, section),
  ]);
  const { tls, operationsPort } = config.http;
  if (tls.clientCa !== null && operationsPort === null)
    problems.push(
      'http.tls.clientCa: expected http.operationsPort beside it, for probes, which have no certificate',
    );
  return [...problems, ...repeatedPlaces(config, enabled)];
}

/** What is wrong, and with which key, if with one. */
export interface Problem {
  readonly key?: string;
  readonly text: string;
}

/** What a gateway that is to run lacks: a service, tokens that suffice where it listens, addresses. */
export function incompleteness(
  config: Config,
  enabled: readonly EnabledService[],
  unserved: readonly UnservedService[],
  names: KeyNames,
): Problem[] {
  if (enabled.length === 0 && unserved.length > 0) return [{ text: nothingToServe(unserved) }];
  const problems: Problem[] = [];
  const open = !isLoopback(config.http.host);
  const text = `too weak for a gateway that listens on ${config.http.host}: ${STRONG}`;
  const { metricsToken } = config.http;
  if (open && metricsToken !== null && isWeak(metricsToken))
    problems.push({ key: 'http.metricsToken', text });
  problems.push(...adminProblems(config, open, text));
  for (const { service, section } of enabled) {
    for (const { key, value, isPublic = false } of service.secrets(section)) {
      if (open && isPublic)
        problems.push({ key, text: `known to everybody, and the gateway listens on ${config.http.host}` });
      else if (value === null)
        problems.push({ key, text: `a token is missing; ${remedy(service, key, names)}` });
      else if (open && isWeak(value)) problems.push({ key, text });
    }
    for (const { backend, key, given } of service.addresses(section)) {
      if (!given) problems.push({ key, text: `no address of ${backend}; ${remedy(service, key, names)}` });
    }
  }
  return problems;
}

function adminProblems(config: Config, open: boolean, weak: string): Problem[] {
  const { token } = config.admin;
  if (token === null) return [];
  const problems: Problem[] = [];
  if (open && isWeak(token)) problems.push({ key: 'admin.token', text: weak });
  if (accessStoreUrl(config) === undefined)
    problems.push({
      key: 'admin.storeUrl',
      text: 'no service has a Postgres or a plain Redis that could keep tokens; give one here, or leave admin.token out',
    });
  return problems;
}

function nothingToServe(unserved: readonly UnservedService[]): string {
  const ways = unserved.map(({ service, wants }) => `${wantsText(wants)} for ${service}`);
  return `no service has the address of its backend; give at least one: ${ways.join(', ')}`;
}

function remedy(service: Service, key: string, names: KeyNames): string {
  const off = names.variable(`${service.name}.enabled`);
  return `set it here or by ${names.variable(key)}, or leave the service out (${off}=false)`;
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
const PAGES = /^\/(livez|readyz|metrics|openapi\.json|docs|console)(\/|$)/;

function repeatedPlaces(config: Config, enabled: readonly EnabledService[]): string[] {
  const mounts = enabled.flatMap(({ service, section }) => service.mounts(section));
  const ports = [config.http.port, config.http.operationsPort, ...mounts.map((mount) => mount.port)];
  return [
    ...mounts
      .filter((mount) => PAGES.test(mount.path))
      .map(({ path }) => `the path ${path} belongs to the gateway's own pages`),
    ...repeated([...mounts.map((mount) => mount.path), ...adminPath(config)]).map(
      (path) => `two entries are served at the path ${path}`,
    ),
    ...repeated(ports.filter((port) => port !== null && port !== 0)).map(
      (port) => `two entries use the port ${port}`,
    ),
  ];
}

function adminPath({ admin, http }: Config): string[] {
  return admin.token === null || http.operationsPort !== null ? [] : [ADMIN_PATH];
}

function repeated<T>(values: readonly T[]): T[] {
  return [...new Set(values.filter((value, i) => values.indexOf(value) !== i))];
}

const STRONG = 'expected at least 24 characters, 10 of them different';

function isWeak(token: string): boolean {
  return token.length < 24 || new Set(token).size < 10;
}
