import type { PreparedIndex } from './prepared-index.js';

/** What the routes of one index work with. */
export interface VectorDeps {
  readonly index: PreparedIndex;
}
