import type { Mount } from '../service.js';
import type { IndexSettings } from './settings.js';

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
