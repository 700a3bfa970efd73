/** Scheme, user and password, hosts, and the rest: the password may hold every sign that is percent-encoded. */
const PARTS = /^([a-z][a-z0-9+.-]*:\/\/)((?:[^/?#]*@)?)([^/?#@]*)(.*)$/is;

/**
 * The addresses of one that names several hosts (`scheme://user:password@one:1,two:2/rest`), in its order; of one host, itself.
 * A host without a port has the scheme's own, not its neighbour's.
 */
export function addressesOf(address: string): string[] {
  const [, scheme, login, hosts, rest] = PARTS.exec(address) ?? [];
  if (hosts === undefined || !hosts.includes(',')) return [address];
  return hosts.split(',').map((host) => `${scheme}${login}${host}${rest}`);
}
