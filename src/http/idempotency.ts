import type { KeptCalls } from '../lib/kept-calls/kept-calls.js';
import type { HttpError } from './errors.js';

export type { KeptCalls } from '../lib/kept-calls/kept-calls.js';

/** How an instance takes the header `Idempotency-Key`. */
export interface Idempotency {
  /** `undefined`: this gateway has no place where replies could be kept. */
  readonly calls: (() => KeptCalls) | undefined;
  /** So long the same key gets the same reply. */
  readonly windowMs: number;
  /** Whether a request that failed so may be made again with the same key. */
  changedNothing(error: HttpError): boolean;
}
