import { jsonRoute, type RouteContext } from '../../../http/route.js';
import type { Access } from '../access.js';
import type { BrokerDeps } from '../deps.js';
import { parseLeniently } from './lenient-json.js';

const route = jsonRoute<BrokerDeps>();
export const brokerRoute: typeof route = (definition) => route({ parseBody: parseLeniently, ...definition });

/** The contract's wait for records where the request gives none, in ms. */
export const DEFAULT_WAIT_MS = 1_000;

/** What a request may take beyond the wait that it asked for, in ms: joining the queue, a slow broker, its answer. */
const GRACE_MS = 10_000;
/** No wait is longer, whatever is configured, in ms. */
const LONGEST_WAIT_MS = 86_400_000;

/** The contract's wait for offsets where the request gives none, in ms. */
export const OFFSETS_WAIT_MS = 10_000;

export function waitOf(timeoutMs: number | undefined, byDefault: number): number {
  return Math.min(timeoutMs ?? byDefault, LONGEST_WAIT_MS);
}

export function deadlineFor(waitMs: number | undefined): number {
  return waitOf(waitMs, DEFAULT_WAIT_MS) + GRACE_MS;
}

/** What the sender of a request may do. */
export function accessOf({ principal }: RouteContext, { access }: BrokerDeps): Access {
  return access.of(principal);
}
