import { plainFormat } from '../http/exchange/error-sender.js';
import type { HttpCore } from '../http/exchange/http-core.js';
import type { ServiceInstance } from '../http/instance.js';
import type { Health } from '../http/monitoring/health.js';
import { metricsAreOpen } from '../http/operations/operations.js';
import { bindRoutes } from '../http/route.js';
import type { ReleaseRegistry } from '../lib/lifecycle.js';
import { Access, type Served } from './api/access.js';
import { routes } from './api/routes.js';
import { type CodePlace, FolderPlace, MemoryPlace } from './codes/code-place.js';
import { CODE_LIFETIME_MS, SignInCodes } from './codes/sign-in-codes.js';
import { PageServer } from './files/page-server.js';
import { RequestSeries, type Step } from './series/request-series.js';
import { seriesView } from './series/series-view.js';

/** Where the console's own routes are. */
export const CONSOLE_API = '/console/api';

/** Credentials and codes: some kB. */
const BODY_BYTES = 256 * 1024;
const TIMEOUT_MS = 10_000;

export interface ConsoleOptions {
  readonly core: HttpCore;
  readonly health: Health;
  readonly served: readonly Served[];
  /** Where the build has put the page. */
  readonly folder: string;
  readonly lifecycle: ReleaseRegistry;
  /** ms since 1970 */
  readonly now: () => number;
  /** A folder that all processes share, where there are several. */
  readonly sharedFolder?: string | undefined;
  /** The steps of all processes, this one included, where there are several. */
  readonly gatherSteps?: (() => Promise<readonly (readonly Step[])[]>) | undefined;
}

/** The page, and what it asks beside the services. */
export interface ServedConsole {
  readonly pages: PageServer;
  readonly api: ServiceInstance;
  /** What this process alone did. */
  steps(): readonly Step[];
}

export function createConsole(options: ConsoleOptions): ServedConsole {
  const { core, health, served, lifecycle, now } = options;
  const series = new RequestSeries(core.metrics.requests, () => core.inFlight, now);
  lifecycle.onStop('console', () => series.release());
  const gather = options.gatherSteps ?? (async () => [series.steps()]);
  const deps = {
    access: new Access(served, () => core.settings.metricsToken),
    codes: new SignInCodes(placeFor(options), now),
    health: () => health.states(),
    series: async (after: number | undefined) => seriesView(await gather(), now(), after),
    isOpen: () => metricsAreOpen(core.settings),
  };
  const api: ServiceInstance = {
    name: 'console',
    path: CONSOLE_API,
    port: null,
    // its routes are open, or look at credentials themselves
    auth: { kind: 'bearer', credentials: [] },
    routes: bindRoutes(routes, deps),
    formatError: plainFormat,
    bodyLimit: BODY_BYTES,
    timeoutMs: TIMEOUT_MS,
    backends: [],
  };
  return { pages: new PageServer(core, options.folder), api, steps: () => series.steps() };
}

function placeFor({ sharedFolder, now }: ConsoleOptions): CodePlace {
  return sharedFolder === undefined
    ? new MemoryPlace(CODE_LIFETIME_MS, now)
    : new FolderPlace(sharedFolder, CODE_LIFETIME_MS, now);
}
