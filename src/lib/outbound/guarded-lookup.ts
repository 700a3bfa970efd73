import type { LookupAddress, LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { AddressGuard } from './address-guard.js';

/** The addresses of a name. */
export type SharedLookup = (hostname: string, options: LookupOptions) => Promise<LookupAddress[]>;

/**
 * `dns.lookup` that hands on only addresses which the guard passes, and fails when none is left.
 * @param port of the connection that is to be made
 * @param blocked makes the error of a name that may not be contacted
 */
export function guardedLookup(
  guard: AddressGuard,
  addressesOf: SharedLookup,
  port: number,
  blocked: (reason: string) => Error,
): LookupFunction {
  return (hostname, options, callback) => {
    const hand = (addresses: LookupAddress[]) => {
      const judged = addresses.map((entry) => ({
        entry,
        refusal: guard.judgeAddress(entry.address, hostname, port),
      }));
      const passed: LookupAddress[] = judged.flatMap(({ entry, refusal }) =>
        refusal === undefined ? [entry] : [],
      );
      const [first] = passed;
      if (first === undefined) callback(blocked(judged[0]?.refusal ?? 'the name has no address'), []);
      else if (options.all === true) callback(null, passed);
      else callback(null, first.address, first.family);
    };
    void addressesOf(hostname, options).then(hand, (error: Error) => callback(error, []));
  };
}

/**
 * Look-ups of one name at the same time share one: Node runs only two at once (half of its threads), and those for a
 * name whose servers are silent would keep everybody else's waiting.
 */
export function sharedLookup(resolve: typeof lookup): SharedLookup {
  const running = new Map<string, Promise<LookupAddress[]>>();
  return (hostname, options) => {
    const key = `${options.family ?? 0} ${options.hints ?? 0} ${hostname}`;
    const known = running.get(key);
    if (known !== undefined) return known;
    const started = new Promise<LookupAddress[]>((fulfil, reject) => {
      resolve(hostname, { ...options, all: true }, (error, addresses) => {
        if (error === null) fulfil(addresses);
        else reject(error);
      });
    }).finally(() => running.delete(key));
    running.set(key, started);
    return started;
  };
}
