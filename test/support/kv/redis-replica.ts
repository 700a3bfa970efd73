import { eventually } from '../eventually.js';
import type { RedisOptions } from './redis-configuration.js';
import { type RedisServer, startRedis } from './redis-server.js';

/** How long the first copy of the data may take, in ms. */
const SYNC_MS = 15_000;

/** Starts a replica with the options of its primary, unless `options` has others; resolves when it has the primary's data. */
export async function startReplica(
  of: RedisServer,
  options: Partial<RedisOptions> = {},
): Promise<RedisServer> {
  const { password } = of.options;
  const replica = await startRedis({
    ...of.options,
    ...(of.certificates === undefined ? {} : { certificates: of.certificates }),
    ...options,
    config: [
      ...(of.options.config ?? []),
      `replicaof 127.0.0.1 ${of.port}`,
      ...(password === undefined ? [] : [`masterauth "${password}"`]),
      ...(options.config ?? []),
    ],
  });
  try {
    await inSync(replica);
    return replica;
  } catch (error) {
    await replica.stop();
    throw error;
  }
}

/** Waits until a replica has its primary's data and follows it. */
export async function inSync(replica: RedisServer): Promise<void> {
  await eventually(async () => {
    const info = String(await replica.command('INFO', 'replication'));
    if (!/^master_link_status:up/m.test(info)) throw new Error(`no link to the primary: ${info}`);
  }, SYNC_MS);
}
