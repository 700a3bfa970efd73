import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Certificates } from '../certificates.js';

/** `newest`: what npm start runs, 8.0 or later where it can be fetched; `system`: what the system has on PATH. */
export type RedisProgram = 'newest' | 'system';

export interface RedisOptions {
  /** Default `newest`. */
  readonly program?: RedisProgram;
  /** Lines of redis.conf; they come last and win. */
  readonly config?: readonly string[];
  /** Of the user `default`, who has none otherwise. */
  readonly password?: string;
  /** Lines of an ACL file, such as `user reader on >secret ~* +@read`. The user `default` needs a line there too. */
  readonly acl?: readonly string[];
  /** TLS instead of plain TCP. `mutual`: clients must show a certificate of the same CA. */
  readonly tls?: 'server' | 'mutual';
  /** Certificates to use instead of fresh ones, so that several servers share one CA. */
  readonly certificates?: Certificates;
  /** Listens on a Unix socket in its folder too. */
  readonly unixSocket?: boolean;
}

/** Where one server listens and keeps its files. */
export interface Place {
  readonly port: number;
  readonly folder: string;
  readonly certificates: Certificates | undefined;
  readonly sentinel: boolean;
}

export const configurationOf = (folder: string) => join(folder, 'redis.conf');
export const socketOf = (folder: string) => join(folder, 'redis.sock');
const aclOf = (folder: string) => join(folder, 'users.acl');

/** Writes redis.conf and the ACL file into the server's folder, for the owner alone. */
export async function writeConfiguration(place: Place, options: RedisOptions): Promise<void> {
  const { folder, port } = place;
  const lines = [
    'bind 127.0.0.1',
    `dir "${folder}"`,
    // the title would overwrite the environment that the leak check reads
    'set-proc-title no',
    ...(place.sentinel ? [] : ['save ""', 'appendonly no', 'repl-diskless-sync-delay 0']),
    ...tlsLines(place, options),
    ...(options.tls === undefined ? [`port ${port}`] : ['port 0', `tls-port ${port}`]),
    ...(options.password === undefined ? [] : [`requirepass "${options.password}"`]),
    ...(options.acl === undefined ? [] : [`aclfile "${aclOf(folder)}"`]),
    ...(options.unixSocket === true ? [`unixsocket "${socketOf(folder)}"`, 'unixsocketperm 700'] : []),
    ...(options.config ?? []),
  ];
  if (options.acl !== undefined)
    await writeFile(aclOf(folder), `${options.acl.join('\n')}\n`, { mode: 0o600 });
  await writeFile(configurationOf(folder), `${lines.join('\n')}\n`, { mode: 0o600 });
}

function tlsLines({ certificates }: Place, { tls }: RedisOptions): string[] {
  if (certificates === undefined) return [];
  return [
    `tls-ca-cert-file "${certificates.ca}"`,
    `tls-cert-file "${certificates.serverCert}"`,
    `tls-key-file "${certificates.serverKey}"`,
    `tls-auth-clients ${tls === 'mutual' ? 'yes' : 'no'}`,
    'tls-replication yes',
    'tls-cluster yes',
  ];
}
