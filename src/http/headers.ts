import type { IncomingHttpHeaders } from 'node:http';

/** A contract's own prefix of header names, and the one under which its SDKs send the same headers; lower case, such as `broker-`. */
export interface HeaderAlias {
  readonly own: string;
  readonly sent: string;
}

/**
 * Reads the header `name` (lower case) under the contract's prefix or the other one; the contract's wins. Both names are made
 * once.
 */
export function contractHeaderReader(
  { own, sent }: HeaderAlias,
  name: string,
): (headers: IncomingHttpHeaders) => string | undefined {
  const contract = own + name;
  const alias = sent + name;
  return (headers) => single(headers[contract] ?? headers[alias]);
}

/** All headers with aliases replaced by the contract's names, which win; a repeated header is joined by `, `. */
export function withContractNames(
  headers: IncomingHttpHeaders,
  alias: HeaderAlias | undefined,
): Record<string, string> {
  const named: Record<string, string> = {};
  for (const name in headers) {
    const value = single(headers[name]);
    if (value === undefined) continue;
    const contract = contractName(name, alias);
    if (contract === name || headers[contract] === undefined) named[contract] = value;
  }
  return named;
}

function contractName(name: string, alias: HeaderAlias | undefined): string {
  return alias !== undefined && name.startsWith(alias.sent)
    ? alias.own + name.slice(alias.sent.length)
    : name;
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}
