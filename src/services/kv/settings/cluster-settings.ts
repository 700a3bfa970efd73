import { z } from 'zod';
import { HOST_AND_PORT } from '../../../lib/address.js';

/** Settings of a database on a Redis Cluster; spread into the database's own. */
export const clusterSettings = {
  cluster: z
    .boolean()
    .default(false)
    .describe('Whether url names a node of a Redis Cluster; the other nodes are learned from it.'),
  nodes: z
    .array(z.string().regex(HOST_AND_PORT, 'expected host:port'))
    .default([])
    .describe('Further nodes (host:port) of the cluster, for when the one in url is away at the start.'),
};
