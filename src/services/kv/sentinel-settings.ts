import { z } from 'zod';
import type { Address } from './connection.js';

/** Settings of a database whose servers are found by Redis Sentinel; spread into the database's own. */
export const sentinelSettings = {
  sentinels: z
    .array(z.string().regex(/^([^\s:,[\]]+|\[[0-9a-fA-F:.]+\]):\d{1,5}$/, 'expected host:port'))
    .default([])
    .describe(
      'Addresses (host:port) of Redis Sentinels; the host of url is then the name of the primary that they monitor.',
    ),
  sentinelUsername: z.string().min(1).nullable().default(null).describe('User for the Sentinels themselves.'),
  sentinelPassword: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .meta({ secret: true })
    .describe('Password for the Sentinels themselves.'),
  sentinelTls: z.boolean().default(false).describe('Whether the Sentinels speak TLS; with the files of tls.'),
};

/** `host:port` or `[IPv6]:port`. */
export function addressOf(text: string): Address {
  const at = text.lastIndexOf(':');
  return { host: text.slice(0, at).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(at + 1)) };
}
