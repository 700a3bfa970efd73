import type { DatabaseSettings } from '../settings.js';
import { endpointOf } from './endpoint.js';

/** What a database refuses beside what never runs over HTTP. */
export interface Denials {
  /** Upper-case names of commands, and why. */
  readonly commands: ReadonlyMap<string, string>;
  /** Lower-case names of commands and subcommands that scripts must not run either. */
  readonly everywhere: readonly string[];
}

const CONFIGURED = 'the configuration refuses it';
const SHARED = 'it reaches the other databases on the same Redis';

/** They reach data of other numbered databases, show it, or change what all of them have in common. */
const REACHING = 'MOVE SWAPDB FLUSHALL COPY MIGRATE MONITOR SLOWLOG'.split(' ');
const REACHING_SUBCOMMANDS =
  'select config|set config|resetstat function|load function|delete function|flush function|restore'.split(
    ' ',
  );

export function denialsOf(database: DatabaseSettings, databases: readonly DatabaseSettings[]): Denials {
  const configured = database.deniedCommands.map((name) => name.toUpperCase());
  const shared = sharesServer(database, databases);
  const reaching = shared ? REACHING : [];
  const commands = new Map([
    ...reaching.map((name) => [name, SHARED] as const),
    ...configured.map((name) => [name, CONFIGURED] as const),
  ]);
  const everywhere = [...commands.keys()].map((name) => name.toLowerCase());
  return { commands, everywhere: [...everywhere, ...(shared ? REACHING_SUBCOMMANDS : [])] };
}

/** Another entry has another number on the same server. */
function sharesServer(database: DatabaseSettings, databases: readonly DatabaseSettings[]): boolean {
  const own = placeOf(database);
  return databases.some((other) => {
    const place = placeOf(other);
    return place !== undefined && place.server === own?.server && place.db !== own.db;
  });
}

function placeOf({ url, sentinels }: DatabaseSettings): { server: string; db: number } | undefined {
  if (url === null) return undefined;
  const { host, port, path, db } = endpointOf({ url, tls: { ca: null, cert: null, key: null } });
  const server =
    sentinels.length > 0 ? `${host} of ${[...sentinels].sort().join()}` : (path ?? `${host}:${port}`);
  return { server, db };
}
