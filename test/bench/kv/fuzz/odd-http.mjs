import { ODD_HEADERS } from './odd-headers.mjs';
import { ODD_REQUEST_LINES } from './odd-request-lines.mjs';

const FORMS = [...ODD_REQUEST_LINES, ...ODD_HEADERS];

/**
 * A request that is odd as HTTP, with what must come of it.
 * @param {import('./random.mjs').Random} random
 * @param {import('./requests.mjs').Context} context
 * @returns {import('./requests.mjs').Request}
 */
export function oddHttp(random, { tokens }) {
  const index = random.below(FORMS.length);
  const { wire, expected } = FORMS[index](random, ['Authorization', `Bearer ${tokens.full}`]);
  return { kind: `odd-http ${index}`, wire: Buffer.from(wire), expected: [expected], fresh: true };
}
