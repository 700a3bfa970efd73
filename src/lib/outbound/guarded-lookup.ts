import type { LookupAddress, LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { AddressGuard } from './address-guard.js';

type Resolved = Promise<LookupAddress[]>;

/**
 * `dns.lookup` that hands on only addresses which the guard passes, and fails when none is left.
 * @param blocked makes the error of a name that may not be contacted
 */
export function guardedLookup(
  guard: AddressGuard,
  resolve: typeof lookup,
  blocked: (reason: string) => Error,
): LookupFunction {
  const addressesOf = sharedLookup(resolve);
  return (hostname, options, callback) => {
    const hand = (addresses: LookupAddress[]) => {
      const judged = addresses.map((entry) => ({
        entry,
        refusal: guard.judgeAddress(entry.address, hostname),
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
function sharedLookup(resolve: typeof lookup): (hostname: string, options: LookupOptions) => Resolved {
  const running = new Map<string, Resolved>();
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
