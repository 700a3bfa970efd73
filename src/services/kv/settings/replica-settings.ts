import { z } from 'zod';
import { serverUrl } from '../../../lib/settings.js';
import { namesDatabase } from './server-checks.js';

/** Settings of a database with replicas that are read from; spread into the database's own. */
export const replicaSettings = {
  replicas: z
    .array(serverUrl(['redis:', 'rediss:', 'unix:'], namesDatabase))
    .default([])
    .meta({ secret: true, env: 'PORTICO_REDIS_REPLICAS' })
    .describe(
      'Addresses of replicas of url, which answer commands that only read. Without user and password, those of url.',
    ),
  readFromReplicas: z
    .boolean()
    .default(false)
    .describe('With sentinels: whether commands that only read go to a replica that the Sentinels name.'),
};
