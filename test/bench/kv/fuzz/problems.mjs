const SHOWN_BYTES = 1_500;
const SHOWN_IN_FLIGHT = 10;
const SHOWN_IN_FLIGHT_BYTES = 200;
/** Of problems that look alike, so many are shown; after so many different ones, or so many at all, the rest tells nothing new. */
const SHOWN_ALIKE = 2;
const MOST_DIFFERENT = 20;
const MOST = 1_000;

/** Collects what went wrong, and prints each with the request that it belongs to and how to make that again. */
export class Problems {
  count = 0;
  /** The driver itself has failed: what follows from that is not the gateway's doing. */
  closed = false;
  #alike = new Map();
  #seed;
  #inFlight = new Map();

  /** @param {number} seed */
  constructor(seed) {
    this.#seed = seed;
  }

  /** @param {import('./perform.mjs').FuzzRequest} request */
  started(request) {
    this.#inFlight.set(request.index, request);
  }

  /** @param {import('./perform.mjs').FuzzRequest} request */
  ended(request) {
    this.#inFlight.delete(request.index);
  }

  get tooMany() {
    return this.#alike.size >= MOST_DIFFERENT || this.count >= MOST;
  }

  /** @param {string} problem @param {import('./perform.mjs').FuzzRequest} [request] */
  add(problem, request) {
    if (!this.#counted(problem, request)) return;
    console.log(`PROBLEM: ${problem}`);
    if (request === undefined) return;
    const again = `--seed ${this.#seed} --first ${request.index} --requests 1`;
    console.log(`  ${describe(request)}; again: ${again}`);
  }

  /** A problem that may be due to any of the requests that are on their way. @param {string} problem */
  addForAll(problem) {
    if (!this.#counted(problem)) return;
    console.log(`PROBLEM: ${problem}`);
    const newest = [...this.#inFlight.values()].reverse();
    for (const request of newest.slice(0, SHOWN_IN_FLIGHT))
      console.log(`  meanwhile ${describe(request, SHOWN_IN_FLIGHT_BYTES)}`);
  }

  /** One line for each sort of problem. */
  summary() {
    return [...this.#alike].map(([problem, count]) => `  ${count} times: ${problem}`).join('\n');
  }

  /** @returns {boolean} whether it is worth showing */
  #counted(problem, request) {
    if (this.closed) return false;
    this.count += 1;
    const sort = `${request?.kind ?? ''} ${problem.slice(0, 200)}`.replace(/\d+/g, 'n').trim();
    const count = (this.#alike.get(sort) ?? 0) + 1;
    this.#alike.set(sort, count);
    return count <= SHOWN_ALIKE;
  }
}

function describe({ index, kind, wire, ending }, bytes = SHOWN_BYTES) {
  const text = JSON.stringify(wire.subarray(0, bytes).latin1Slice());
  const short = text.replace(/(.)\1{30,}/g, (run, character) => `${character}{${run.length} times}`);
  const more = wire.length > bytes ? `... (${wire.length} bytes)` : '';
  return `request ${index}, ${kind}${ending === undefined ? '' : `, then ${ending}`}: ${short}${more}`;
}
