import type { Mount } from '../service.js';
import { ADMINISTRATOR, IndexTokens } from './index-tokens.js';
import type { IndexSettings, VectorSettings } from './settings.js';

/** Where an index is served, and whose tokens it takes. */
export function mountOf({ name, path, port, token, readOnlyToken }: IndexSettings): Mount {
  const credentials = [
    ...(token === null ? [] : [{ token, principal: { name: 'token', access: 'full' as const } }]),
    ...(readOnlyToken === null
      ? []
      : [{ token: readOnlyToken, principal: { name: 'read-only token', access: 'read' as const } }]),
  ];
  return { name, path, port, auth: { kind: 'bearer', credentials } };
}

/** Where the indexes are that are made at run time, and by whom. Each has tokens of its own. */
export function managedMount(adminToken: string, { path }: VectorSettings['managed']): Mount {
  const tokens = new IndexTokens(adminToken);
  const credentials = [{ token: adminToken, principal: ADMINISTRATOR }];
  return {
    name: 'indexes',
    path,
    port: null,
    auth: { kind: 'bearer', credentials, resolve: (token) => tokens.open(token) },
  };
}
