import type { IncomingMessage } from 'node:http';
import type { Mount } from '../../http/instance.js';
import type { Principal } from '../../http/route.js';
import { type Authenticate, authenticator, gateOf } from '../../http/routing/auth.js';

/** What credentials open. */
export interface Unlocked {
  readonly service: string;
  readonly name: string;
  readonly path: string;
  readonly access: Principal['access'];
  /** Whose they are, as logs have it. */
  readonly principal: string;
}

/** An instance and the service that it belongs to. */
export interface Served {
  readonly service: string;
  /** The instance itself, whose credentials may be exchanged while it is served. */
  readonly mount: Pick<Mount, 'name' | 'path' | 'auth'>;
}

interface Door {
  readonly service: string;
  readonly mount: Pick<Mount, 'name' | 'path'>;
  readonly authenticate: Authenticate;
}

/** Whose token the metrics have. */
export const OPERATIONS = 'operations';

/** Which of the gateway's instances an `Authorization` opens, as each of them would say itself. */
export class Access {
  private readonly doors: readonly Door[];

  /** @param metricsToken opens what the operations show; asked each time, as it can be exchanged */
  constructor(served: readonly Served[], metricsToken: () => string | null) {
    const operations: Door = {
      service: OPERATIONS,
      mount: { name: 'default', path: '' },
      authenticate: (request) => operatorBy(metricsToken())(request),
    };
    const doors = served.map(({ service, mount }): Door => {
      const gate = gateOf(mount);
      return { service, mount, authenticate: (request) => gate.authenticate(request) };
    });
    this.doors = [...doors, operations];
  }

  /** @throws HttpError 503 where nothing is opened and an instance cannot tell at present */
  unlockedBy(authorization: string | undefined): Unlocked[] {
    const request = { headers: { authorization }, url: '/' } as IncomingMessage;
    let trouble: unknown;
    const unlocked: Unlocked[] = [];
    // each is asked, whatever another one said: the time tells nothing
    for (const { service, mount, authenticate } of this.doors) {
      try {
        const principal = authenticate(request);
        if (principal === undefined) continue;
        const { name, path } = mount;
        unlocked.push({ service, name, path, access: principal.access, principal: principal.name });
      } catch (error) {
        trouble = error;
      }
    }
    if (unlocked.length === 0 && trouble !== undefined) throw trouble;
    return unlocked;
  }
}

function operatorBy(token: string | null): Authenticate {
  const principal = { name: 'operator', access: 'read' } as const;
  return authenticator({ kind: 'bearer', credentials: token === null ? [] : [{ token, principal }] });
}
