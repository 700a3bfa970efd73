import { halfClosed, hangUp, stalled } from './broken.mjs';
import { HEAVY_FORMS, heavy } from './heavy.mjs';
import { malformed, mutated } from './malformed.mjs';
import { oddHttp } from './odd-http.mjs';
import { randomOf } from './random.mjs';
import { path, rawPath, rows, single } from './requests.mjs';
import { several } from './several.mjs';

/** One of so many requests is heavy. */
const HEAVY_EVERY = 500;
/** Each form of them is made so often at most, however long the run; which comes first is the seed's. */
const HEAVY_ROUNDS = 4;

const KINDS = [
  [28, single],
  [24, path],
  [4, rawPath],
  [18, rows],
  [6, malformed],
  [6, mutated],
  [5, oddHttp],
  [3, several],
  [4, hangUp],
  [1.5, halfClosed],
  [0.3, stalled],
];

/**
 * The request with the number `index` of the run with this seed: always the same, whichever came before.
 * @param {number} seed
 * @param {number} index
 * @param {import('./requests.mjs').Context} context
 * @returns {import('./requests.mjs').Request & { index: number, ending?: import('./broken.mjs').Ending }}
 */
export function makeRequest(seed, index, context) {
  const random = randomOf(seed, index);
  const turn = index / HEAVY_EVERY;
  if (Number.isInteger(turn) && turn > 0 && turn <= HEAVY_FORMS * HEAVY_ROUNDS)
    return { index, ...heavy(random, context, turn - 1 + (seed % HEAVY_FORMS)) };
  const kind = random.weighted(KINDS);
  return { index, ...kind(random, context, `m+${seed}:${index}`) };
}
