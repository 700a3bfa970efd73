import { message } from './message.mjs';
import { path, rows, single } from './requests.mjs';
import { several } from './several.mjs';

/**
 * What a client does that does not behave.
 * @typedef {'hang up' | 'hang up in the reply' | 'end' | 'wait'} Ending
 *   `hang up`: reset after the last byte; `end`: nothing more comes, but the reply is read (half-closed); `wait`: it is silent and
 *   expects the gateway to lose patience
 *
 * @typedef {import('./requests.mjs').Request & { ending: Ending }} BrokenRequest
 * @typedef {import('./random.mjs').Random} Random
 * @typedef {import('./requests.mjs').Context} Context
 */

/** A client that goes away: before, in or after its request, or in the reply. @param {Random} random @param {Context} context @param {string} marker @returns {BrokenRequest} */
export function hangUp(random, context, marker) {
  const { wire } = random.pick([single, rows, path, several])(random, context, marker);
  const length = random.chance(0.5) ? wire.length : random.below(wire.length);
  return {
    kind: 'hang-up',
    wire: wire.subarray(0, length),
    expected: [],
    fresh: true,
    ending: length === wire.length && random.chance(0.5) ? 'hang up in the reply' : 'hang up',
  };
}

/** A client that closes its side, upon which Node ends the connection, whatever is still to be answered. @param {Random} random @param {Context} context @param {string} marker @returns {BrokenRequest} */
export function halfClosed(random, context, marker) {
  const { wire, expected } = random.pick([single, rows])(random, context, marker);
  const whole = random.chance(0.6);
  return {
    kind: 'half-closed',
    wire: whole ? wire : wire.subarray(0, random.below(wire.length)),
    expected: whole
      ? expected.map((one) => ({ ...one, mayEnd: true }))
      : [{ form: 'loose', statuses: [400, 401], mayEnd: true }],
    fresh: true,
    ending: 'end',
  };
}

/** A client that falls silent in the middle: 408, or the end of the connection. @param {Random} random @param {Context} context @returns {BrokenRequest} */
export function stalled(random, { tokens }) {
  const inBody = random.chance(0.6);
  const body = Buffer.from(`["SET","any:1","${'x'.repeat(random.below(100_000))}"]`);
  const wire = message({
    target: '/kv',
    headers: [['Authorization', `Bearer ${tokens.full}`]],
    body,
    chunked: random.chance(0.3) ? 1_000 : 0,
  });
  const headLength = wire.indexOf('\r\n\r\n') + 4;
  const length = inBody
    ? headLength + random.below(wire.length - headLength)
    : 1 + random.below(headLength - 2);
  return {
    kind: inBody ? 'stalled body' : 'stalled head',
    wire: wire.subarray(0, length),
    expected: [{ form: 'error', statuses: [408], mayEnd: true }],
    fresh: true,
    ending: 'wait',
  };
}
