import type { HeaderAlias } from './headers.js';
import type { Idempotency } from './idempotency.js';
import type { AuthScheme, BoundRoute, ErrorFormat } from './route.js';

/** A backend that `/readyz` and the metric `portico_backend_up` ask about. */
export interface Backend {
  /** Such as `redis`. */
  readonly name: string;
  /** Resolves when the backend answers; rejects with a short reason that holds no secret. */
  check(signal: AbortSignal): Promise<void>;
}

/** Where one database, index, cluster or queue service is served, and to whom. */
export interface Mount {
  readonly name: string;
  readonly path: string;
  /** Own TCP port where this instance is served at `/` as well. */
  readonly port: number | null;
  readonly auth: AuthScheme;
}

/** A mount with its backend behind it. */
export interface ServiceInstance extends Mount {
  readonly routes: readonly BoundRoute[];
  readonly formatError: ErrorFormat;
  readonly headerAlias?: HeaderAlias;
  /** Largest request body in bytes. */
  readonly bodyLimit: number;
  /** Of routes that take larger ones, by operation id. */
  readonly bodyLimits?: Readonly<Record<string, number>>;
  /** Deadline of a request in ms, from when its body is there; where its route gives none. */
  readonly timeoutMs: number;
  readonly backends: readonly Backend[];
  /** `undefined`: the header `Idempotency-Key` says nothing here. */
  readonly idempotency?: Idempotency;
}
