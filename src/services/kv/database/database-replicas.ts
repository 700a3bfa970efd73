import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { Logger } from '../../../lib/logger.js';
import type { Endpoint } from '../redis/connection.js';
import { endpointOf } from '../redis/endpoint.js';
import { ReadYourWrites } from '../replicas/read-your-writes.js';
import { Replica } from '../replicas/replica.js';
import type { DatabaseSettings } from '../settings.js';
import type { KvClient } from './client.js';

/** Connects to a database's replicas; `undefined` where the configuration names none. */
export function openReplicas(
  database: DatabaseSettings,
  client: KvClient,
  log: Logger,
  lifecycle: ReleaseRegistry,
): ReadYourWrites | undefined {
  const { connectTimeoutMs, timeoutMs, replyLimit, observer, endpoint } = client.options;
  const open = (replica: Endpoint, name: string) =>
    new Replica({
      endpoint: replica,
      connectTimeoutMs,
      // what a silent replica leaves of the deadline is the primary's
      stallMs: timeoutMs / 2,
      replyLimit,
      observer,
      log: log.child({ replica: name }),
    });
  const replicas = replicaEndpoints(database, endpoint).map(({ replica, name }) => ({
    main: open(replica, name),
    bulk: open(replica, name),
  }));
  if (replicas.length === 0) return undefined;
  return new ReadYourWrites({ primary: client.primary, replicas, log, lifecycle });
}

function replicaEndpoints(
  { replicas, readFromReplicas, tls }: DatabaseSettings,
  primary: Endpoint,
): { readonly replica: Endpoint; readonly name: string }[] {
  const { username, password, db, sentinels } = primary;
  const login = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  };
  if (sentinels !== undefined && readFromReplicas) {
    const { followers: _, ...others } = sentinels;
    return [{ replica: { ...primary, sentinels: { ...others, role: 'slave' } }, name: 'by Sentinel' }];
  }
  return replicas.map((url, i) => {
    const own = endpointOf({ url, tls });
    const withLogin = own.username === undefined && own.password === undefined ? { ...own, ...login } : own;
    return { replica: { ...withLogin, db }, name: String(i) };
  });
}
