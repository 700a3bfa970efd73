import { jsonRoute } from '../../http/route.js';
export const brokerRoute = jsonRoute();
/** The contract's wait for records where the request gives none, in ms. */
export const DEFAULT_WAIT_MS = 1_000;
/** What a request may take beyond the wait that it asked for, in ms: joining the queue, a slow broker, its answer. */
const GRACE_MS = 10_000;
/** No wait is longer, whatever is configured, in ms. */
const LONGEST_WAIT_MS = 86_400_000;
export function deadlineFor(waitMs) {
    return Math.min(waitMs ?? DEFAULT_WAIT_MS, LONGEST_WAIT_MS) + GRACE_MS;
}
//# sourceMappingURL=deps.js.map