import type { z } from 'zod';
import type { Mount, ServiceInstance } from '../http/instance.js';
import type { ErrorFormat, RouteDescription } from '../http/route.js';
import type { ReleaseRegistry } from '../lib/lifecycle.js';
import type { Logger } from '../lib/logger.js';
import type { MetricRegistry } from '../lib/metric-source.js';

export type { Backend, Mount, ServiceInstance } from '../http/instance.js';

/** This process among the worker processes of one gateway. */
export interface Worker {
  /** Names the gateway: the same for all its workers, and no other's. */
  readonly machine: string;
  /** From 0. */
  readonly index: number;
  readonly count: number;
  /** A folder for Unix sockets that the workers share and nobody else may enter. */
  readonly folder: string;
  /** Known to the workers only. */
  readonly secret: string;
}

/** What the composition root gives to a service. */
export interface ServiceRuntime {
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
  readonly metrics: MetricRegistry;
  readonly now: () => number;
  /** Where several processes serve the same ports. */
  readonly worker?: Worker;
}

/** The part of a service's configuration that the composition root reads. */
export interface ServiceConfig {
  /** `null`: nobody has said, so it depends on the addresses. */
  readonly enabled: boolean | null;
  /** Why `npm start` could not bring the backend. */
  readonly missing: string | null;
}

/** Where the configuration says, or should say, where a backend is. */
export interface BackendAddress {
  readonly backend: BackendName;
  /** Such as `kv.databases[0].url`. */
  readonly key: string;
  readonly given: boolean;
}

/** A backend family. A fifth one is a folder with such an object and a line in `services/index.ts`. */
export interface Service<Config extends ServiceConfig = ServiceConfig> {
  readonly name: string;
  /** The service's section of the configuration. */
  readonly config: z.ZodType<Config>;
  /** Every route, for the documentation. */
  readonly routes: readonly RouteDescription[];
  readonly formatError: ErrorFormat;
  /** Schema of what `formatError` returns. */
  readonly error: z.ZodType;
  /** Reply headers of its own, in lower case, that scripts of other origins may read. */
  readonly exposedHeaders: readonly string[];
  /** The secrets of a configuration that must be strong where the gateway is reachable from elsewhere. */
  secrets(config: Config): readonly { readonly key: string; readonly value: string | null }[];
  /** The addresses that this configuration needs. */
  addresses(config: Config): readonly BackendAddress[];
  /** The mounts without a connection. */
  mounts(config: Config): readonly Mount[];
  /**
   * Connects in the background and returns at once: until a backend is there its instance answers 503.
   * Everything acquired is registered with `runtime.lifecycle`.
   */
  open(config: Config, runtime: ServiceRuntime): readonly ServiceInstance[];
}

export type BackendName = 'redis' | 'postgres' | 'kafka' | 'rabbitmq';
