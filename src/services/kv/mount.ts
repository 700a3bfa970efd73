import type { Mount } from '../service.js';
import { TOKEN_PARAMETER } from './api/path-arguments.js';
import { databaseTokens } from './auth/database-tokens.js';
import type { DatabaseSettings } from './settings.js';

/** Where a database is served, and whose tokens it takes. */
export function mountOf(database: DatabaseSettings): Mount {
  const { name, path, port, queryToken } = database;
  const { standard, readOnly, rest } = databaseTokens(database);
  return {
    name,
    path,
    port,
    auth: {
      kind: 'bearer',
      credentials: [
        ...(standard === undefined
          ? []
          : [{ token: standard, principal: { name: 'standard', access: 'full' } as const }]),
        ...(readOnly === undefined
          ? []
          : [{ token: readOnly, principal: { name: 'read-only', access: 'read' } as const }]),
      ],
      ...(queryToken ? { queryKey: TOKEN_PARAMETER } : {}),
      ...(rest === undefined ? {} : { resolve: (token: string) => rest.principalOf(token) }),
      bareToken: true,
    },
  };
}
