import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = [Address, number];
type Port = number | undefined;

/** How a host or address was judged: `undefined` when it may be contacted, otherwise why not. */
export type Refusal = string | undefined;

/**
 * Addresses that no general permission opens: link-local ones and where clouds serve their metadata (credentials
 * among it). An allowed network counts for them only when it lies wholly inside such a range.
 */
const GUARDED: readonly Network[] = [
  '169.254.0.0/16',
  '168.63.129.16/32',
  '100.100.100.200/32',
  'fe80::/10',
  'fd00:ec2::254/128',
].map((text) => ipaddr.parseCIDR(text));

/** Ranges that ipaddr.js (2.5) calls unicast although they are not to be reached from outside, or hide an IPv4 address. */
const ALSO_PRIVATE: readonly Network[] = [
  '168.63.129.16/32',
  '192.88.99.0/24',
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fec0::/10',
].map((text) => ipaddr.parseCIDR(text));

/** Judged hosts that are remembered: a sender has few, and judging an address costs 3 us. */
const MOST_JUDGED = 1_000;

/** Decides which addresses requests may go to: global unicast ones, and what the configuration allows beside them. */
export class AddressGuard {
  private readonly networks: readonly { readonly network: Network; readonly port: Port }[];
  private readonly hosts: readonly { readonly host: string; readonly port: Port }[];
  private readonly judged = new Map<string, Refusal>();
  /** Those that entries name: what is judged for one of them may be judged otherwise for another. */
  readonly ports: ReadonlySet<number>;

  /**
   * @param allowed networks (`10.0.0.0/8`), addresses (`127.0.0.1`) and host names whose addresses may be private; with a
   * port (`10.0.0.0/8:8080`, `[::1]:8080`) on that one alone
   */
  constructor(allowed: readonly string[]) {
    const entries = allowed.map((entry) => {
      const { host, port } = withoutPort(entry);
      return { host: plainHost(host), network: parseNetwork(host), port };
    });
    this.networks = entries.flatMap(({ network, port }) =>
      network === undefined ? [] : [{ network, port }],
    );
    this.hosts = entries.filter(({ network }) => network === undefined);
    this.ports = new Set(entries.flatMap(({ port }) => port ?? []));
  }

  /**
   * Judges a URL's host before any look-up: IP literals (as `URL` spells them: `2130706433` has become `127.0.0.1`)
   * and names that always mean this machine. Other names are judged when they are resolved.
   */
  judgeHost(hostname: string, port: number): Refusal {
    const key = `${hostname} ${port}`;
    if (this.judged.has(key)) return this.judged.get(key);
    if (this.judged.size >= MOST_JUDGED) this.judged.clear();
    const refusal = this.judgeUnknownHost(hostname, port);
    this.judged.set(key, refusal);
    return refusal;
  }

  private judgeUnknownHost(hostname: string, port: number): Refusal {
    const host = plainHost(hostname);
    if (isAddress(host)) return this.judgeAddress(host, host, port);
    if (host !== 'localhost' && !host.endsWith('.localhost')) return undefined;
    const refusal = this.judgeAddress('127.0.0.1', host, port);
    return refusal === undefined ? undefined : this.judgeAddress('::1', host, port);
  }

  /** Judges `address`, to which `hostname` was resolved (or which it is), for a connection to a port of it. */
  judgeAddress(address: string, hostname: string, port: number): Refusal {
    let parsed: Address;
    try {
      parsed = ipaddr.process(withoutZone(address));
    } catch {
      return `${address} is not an IP address`;
    }
    if (isGlobal(parsed)) return undefined;
    const guarded = GUARDED.find((network) => contains(network, parsed));
    const host = plainHost(hostname);
    const allowed = [
      ...this.networks.filter(
        ({ network }) =>
          contains(network, parsed) && (guarded === undefined || contains(guarded, network[0], network[1])),
      ),
      ...(guarded === undefined ? this.hosts.filter((entry) => entry.host === host) : []),
    ];
    if (allowed.some((entry) => entry.port === undefined || entry.port === port)) return undefined;
    const range = guarded === undefined ? parsed.range() : 'link-local or metadata';
    const onlyPorts = allowed.length === 0 ? '' : `, and port ${port} of it is not among those allowed`;
    return `${address} is not a public address (${range})${onlyPorts}`;
  }
}

/** The port that a URL means. */
export function portOf({ protocol, port }: { readonly protocol: string; readonly port: string }): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}

/** Whether `entry` can stand in the list of allowed destinations. */
export function isAllowEntry(entry: string): boolean {
  const { host, port } = withoutPort(entry);
  if (port !== undefined && (port < 1 || port > 65_535)) return false;
  return parseNetwork(host) !== undefined || isHostName(host);
}

/** Whether `entry` is one host: a name or an address, with or without a port. */
export function isHostEntry(entry: string): boolean {
  const { host } = withoutPort(entry);
  return isAllowEntry(entry) && (isAddress(host) || isHostName(host));
}

/** The key of an entry for `ofHost`. */
export function hostKey(entry: string): string {
  const { host, port } = withoutPort(entry);
  return port === undefined ? plainHost(host) : `${plainHost(host)}:${port}`;
}

/** What was configured for a host, or for this port of it alone. */
export function ofHost<T>(entries: ReadonlyMap<string, T>, hostname: string, port: number): T | undefined {
  const host = plainHost(hostname);
  return entries.get(`${host}:${port}`) ?? entries.get(host);
}

const isHostName = (text: string) => /^(?=.*[a-z])[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text);

/** `10.0.0.0/8:8080` or `[::1]:8080`; an IPv6 address without brackets has no port. */
function withoutPort(entry: string): { host: string; port: Port } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(entry) ?? [];
  return port === undefined
    ? { host: entry, port: undefined }
    : { host: (bracketed ?? plain) as string, port: Number(port) };
}

function parseNetwork(entry: string): Network | undefined {
  const [text, bits] = entry.split('/', 2) as [string, string | undefined];
  // ipaddr.js also takes `1`, `10.0/8` and `0x7f.1`, which mean something else than they seem to
  if (!isAddress(text)) return undefined;
  try {
    if (bits !== undefined) return mappedNetwork(...ipaddr.parseCIDR(entry));
    const address = ipaddr.process(entry);
    return [address, address.kind() === 'ipv4' ? 32 : 128];
  } catch {
    return undefined;
  }
}

/** `::ffff:10.0.0.0/104` means `10.0.0.0/8`: addresses are compared after unwrapping. */
function mappedNetwork(address: Address, bits: number): Network {
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= 96)
    return [address.toIPv4Address(), bits - 96];
  return [address, bits];
}

/** Whether `address` (with its first `bits` fixed, when it stands for a network) lies inside `network`. */
function contains(network: Network, address: Address, bits = Number.POSITIVE_INFINITY): boolean {
  return network[0].kind() === address.kind() && bits >= network[1] && address.match(network as never);
}

function isGlobal(address: Address): boolean {
  return address.range() === 'unicast' && !ALSO_PRIVATE.some((network) => contains(network, address));
}

function isAddress(host: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(host) || ipaddr.IPv6.isValid(host);
}

/** Lower case, without the brackets of an IPv6 literal, an IPv6 zone or the root's dot. */
function plainHost(hostname: string): string {
  return withoutZone(hostname.toLowerCase().replace(/^\[(.*)\]$/, '$1')).replace(/\.$/, '');
}

function withoutZone(address: string): string {
  return address.includes(':') ? (address.split('%', 1)[0] as string) : address;
}
