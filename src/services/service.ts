import type { z } from 'zod';
import type { HeaderAlias } from '../http/headers.js';
import type { KeptCalls } from '../http/idempotency.js';
import type { Mount, ServiceInstance } from '../http/instance.js';
import type { ErrorFormat, RouteDescription, ServiceDocumentation } from '../http/route.js';
import type { ReleaseRegistry } from '../lib/lifecycle.js';
import type { Logger } from '../lib/logger.js';
import type { MetricRegistry } from '../lib/metric-source.js';
import type { Tracer } from '../lib/traces/tracer.js';

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
export interface ServiceRuntime<Config = ServiceConfig> {
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
  readonly metrics: MetricRegistry;
  readonly now: () => number;
  /** Where traces are wanted. */
  readonly tracer?: Tracer;
  /** Calls `listener` with the service's section whenever that was read again. Only keys marked `reload` differ. */
  onReload(listener: (section: Config) => void): void;
  /** Keeps calls with a key for services whose backend cannot; opened when it is first asked for. `undefined`: there is no place. */
  readonly keptCalls: (() => KeptCalls) | undefined;
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

/** One of the values that a client needs beside the URL. */
export interface Credential {
  /** Such as `PORTICO_KV_TOKEN`. */
  readonly variable: string;
  /**
   * Who makes it: `npm start` once, at random behind `prefix`, or the gateway. It prints it as the token of `principal`, also
   * where a configuration has one of its own.
   * `account`: base64 of JSON with a UserID, which SDKs read out of it, and the secret.
   */
  readonly made:
    | {
        readonly by: 'start';
        readonly as: 'secret' | 'name' | 'account';
        readonly prefix: string;
        readonly principal?: string;
      }
    | { readonly by: 'gateway'; readonly principal: string };
  /** What it is where everybody may know it: in tests, and in the image for tests. */
  readonly inTests: string;
  /** Under which SDKs and frameworks read it. */
  readonly otherNames: readonly string[];
  /** Where the service tells what it is by now, if that can change: a path below its own and a member of the reply. */
  readonly toldAt?: { readonly path: string; readonly member: string };
}

/** What `npm start` makes for a service, and shows of it; `npm run docs` writes it where the start scripts read it. */
export interface ServiceCard {
  /** Without which it answers nothing; pgvector is a part of Postgres. */
  readonly needs: readonly (BackendName | 'pgvector')[];
  /** In the order in which the card shows them; the first is the one to log in with. */
  readonly credentials: readonly Credential[];
  /** Under which SDKs and frameworks read the URL. */
  readonly urlNames: readonly string[];
  /** Variables of the gateway where the backends are `npm start`'s own. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Requests by which the contract that is common to all services is tested. */
export interface ContractProbe {
  /** Needs the backend; the path is below the mount. */
  readonly request: { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: string };
  /** A path that takes a body by POST. */
  readonly takesBody: string;
  /** A section whose names in the backends are the tests' own. */
  readonly apart: Readonly<Record<string, unknown>>;
  /** The same with bodies of at most 64 KiB. */
  readonly limited: Readonly<Record<string, unknown>>;
}

/** A service that `npm start` runs with backends of its own. */
export interface StartedService {
  /** A request with the first of its credentials. @param path below its URL @throws when the reply is no 2xx */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
  /** What `connection.env` says, the backends' own addresses among it. */
  readonly variables: Readonly<Record<string, string>>;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

export interface Secret {
  readonly key: string;
  readonly value: string | null;
  /** Everybody knows it. */
  readonly isPublic?: boolean;
}

/** A backend family. A fifth one is a folder with such an object and a line in `services/index.ts`. */
export interface Service<Config extends ServiceConfig = ServiceConfig> {
  readonly name: string;
  /** The service's section of the configuration. */
  readonly config: z.ZodType<Config>;
  /** Every route, for the documentation. */
  readonly routes: readonly RouteDescription[];
  readonly documentation: ServiceDocumentation;
  readonly formatError: ErrorFormat;
  /** Schema of what `formatError` returns. */
  readonly error: z.ZodType;
  readonly card: ServiceCard;
  readonly probe: ContractProbe;
  /** Its prefix of header names, and the one under which SDKs send the same headers. */
  readonly headerAlias?: HeaderAlias;
  /** Reply headers of its own, in lower case, that scripts of other origins may read. */
  readonly exposedHeaders: readonly string[];
  /** The secrets of a configuration that must be strong where the gateway is reachable from elsewhere. */
  secrets(config: Config): readonly Secret[];
  /** The addresses that this configuration needs. */
  addresses(config: Config): readonly BackendAddress[];
  /** The backend that may keep a few rows or keys of the gateway's own; `undefined`: this configuration has none that can. */
  store?(config: Config): { readonly backend: BackendName; readonly url: string | null } | undefined;
  /** What a token made at run time may be restricted to, beside reading. Its output goes to the principal. */
  readonly permissions?: z.ZodType;
  /** The mounts without a connection. */
  mounts(config: Config): readonly Mount[];
  /**
   * Connects in the background and returns at once: until a backend is there its instance answers 503.
   * Everything acquired is registered with `runtime.lifecycle`.
   */
  open(config: Config, runtime: ServiceRuntime<Config>): readonly ServiceInstance[];
  /** Wipes what tests have left, for the image for tests: what is declared stays, empty, and the gateway goes on. */
  reset?(started: StartedService): Promise<void>;
}

export type BackendName = 'redis' | 'postgres' | 'kafka' | 'rabbitmq';
