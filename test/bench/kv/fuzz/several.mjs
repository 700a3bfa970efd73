import { path, rows, single } from './requests.mjs';

/**
 * Several requests in one write on one connection: as many replies, in order.
 * @param {import('./random.mjs').Random} random
 * @param {import('./requests.mjs').Context} context
 * @param {string} marker
 * @returns {import('./requests.mjs').Request}
 */
export function several(random, context, marker) {
  const requests = random
    .list(2 + random.below(6), () => undefined)
    .map((_, i) => random.pick([single, single, path, rows])(random, context, `${marker}:${i}`));
  return {
    kind: 'several',
    wire: Buffer.concat(requests.map(({ wire }) => wire)),
    expected: requests.flatMap(({ expected }) => expected),
    fresh: true,
  };
}
