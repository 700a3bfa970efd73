import type { AuthScheme } from '../../http/route.js';
import type { Mount } from '../service.js';
import type { QueueSettings } from './settings.js';

export const PRINCIPALS = { full: 'queue', read: 'queue read-only' };

/** Where the queue is served, and whose tokens it takes. */
export function mountOf({ path, port, token, readOnlyToken }: QueueSettings): Mount {
  return { name: 'default', path, port, auth: authOf(token, readOnlyToken) };
}

/** The quota's documents send the token without `Bearer`; webhook senders can only put it into the query. */
function authOf(token: string | null, readOnlyToken: string | null): AuthScheme {
  const known = [
    { token, principal: { name: PRINCIPALS.full, access: 'full' } as const },
    { token: readOnlyToken, principal: { name: PRINCIPALS.read, access: 'read' } as const },
  ];
  return {
    kind: 'bearer',
    credentials: known.flatMap(({ token: text, principal }) =>
      text === null ? [] : [{ token: text, principal }],
    ),
    queryKey: 'qstash_token',
    bareToken: true,
  };
}
