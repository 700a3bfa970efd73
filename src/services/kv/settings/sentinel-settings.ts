import { z } from 'zod';
import { HOST_AND_PORT } from '../../../lib/address.js';

/** Settings of a database whose servers are found by Redis Sentinel; spread into the database's own. */
export const sentinelSettings = {
  sentinels: z
    .array(z.string().regex(HOST_AND_PORT, 'expected host:port'))
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
