import type { IncomingHttpHeaders } from 'node:http';

/**
 * The contracts' own header prefixes and the names under which the SDKs send the same headers. What arrives under
 * an alias is read as if it had come under the contract's name; the contract's name wins when both are there.
 */
export const HEADER_ALIASES = {
  'service-': 'upstash-',
  'broker-': 'kafka-',
} as const;

const PREFIXES = Object.entries(HEADER_ALIASES);

/** Value of the header with the contract's name `name` (lower case, such as `service-encoding`), under it or its alias. */
export function contractHeader(headers: IncomingHttpHeaders, name: string): string | undefined {
  const own = single(headers[name]);
  if (own !== undefined) return own;
  for (const [prefix, alias] of PREFIXES) {
    if (name.startsWith(prefix)) return single(headers[alias + name.slice(prefix.length)]);
  }
  return undefined;
}

/** `contractHeader` for one name, for paths where its search counts: both names are made once. */
export function contractHeaderReader(name: string): (headers: IncomingHttpHeaders) => string | undefined {
  const [prefix = '', alias = ''] = PREFIXES.find(([own]) => name.startsWith(own)) ?? [];
  const other = alias + name.slice(prefix.length);
  return (headers) => single(headers[name] ?? headers[other]);
}

/** All headers with aliases replaced by the contract's names; a repeated header is joined by `, `. */
export function withContractNames(headers: IncomingHttpHeaders): Record<string, string> {
  const named: Record<string, string> = {};
  for (const name in headers) {
    const value = single(headers[name]);
    if (value === undefined) continue;
    const contract = contractName(name);
    if (contract === name || headers[contract] === undefined) named[contract] = value;
  }
  return named;
}

function contractName(name: string): string {
  for (const [prefix, alias] of PREFIXES) {
    if (name.startsWith(alias)) return prefix + name.slice(alias.length);
  }
  return name;
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}
