import type { Mount } from '../service.js';
import { WEBHOOK_CREDENTIALS } from './api/webhook.js';
import type { ClusterSettings } from './settings.js';

/** Where a cluster is served, and whose names and passwords it takes. */
export function mountOf({ name, path, port, users }: ClusterSettings): Mount {
  const credentials = users.flatMap(({ username, password }) =>
    password === null ? [] : [{ username, password, principal: { name: username, access: 'full' as const } }],
  );
  return { name, path, port, auth: { kind: 'basic', credentials, queryKeys: WEBHOOK_CREDENTIALS } };
}
