import type { IncomingMessage } from 'node:http';
import type { Mount } from '../../http/instance.js';
import type { Principal } from '../../http/route.js';
import { type Authenticate, authenticator } from '../../http/routing/auth.js';

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
  readonly mount: Pick<Mount, 'name' | 'path' | 'auth'>;
}

interface Door extends Served {
  readonly authenticate: Authenticate;
}

/** Whose token the metrics have. */
export const OPERATIONS = 'operations';

/** Which of the gateway's instances an `Authorization` opens, as each of them would say itself. */
export class Access {
  private readonly doors: readonly Door[];

  /** @param metricsToken opens what the operations show */
  constructor(served: readonly Served[], metricsToken: string | null) {
    const operator = { name: 'operator', access: 'read' } as const;
    const credentials = metricsToken === null ? [] : [{ token: metricsToken, principal: operator }];
    const operations: Served = {
      service: OPERATIONS,
      mount: { name: 'default', path: '', auth: { kind: 'bearer', credentials } },
    };
    this.doors = [...served, operations].map((each) => ({
      ...each,
      authenticate: authenticator(each.mount.auth),
    }));
  }

  unlockedBy(authorization: string | undefined): Unlocked[] {
    const request = { headers: { authorization }, url: '/' } as IncomingMessage;
    // each is asked, whatever another one said: the time tells nothing
    return this.doors.flatMap(({ service, mount: { name, path }, authenticate }) => {
      const principal = authenticate(request);
      return principal === undefined
        ? []
        : [{ service, name, path, access: principal.access, principal: principal.name }];
    });
  }
}
