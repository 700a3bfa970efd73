import { eventually } from '../eventually.js';
import { type RunningGateway, startGateway } from '../gateway.js';
import { TOKENS } from '../tokens.js';
import type { RedisProgram } from './redis-configuration.js';
import { startRedis } from './redis-server.js';

let chosen: RedisProgram | undefined;

/** Lets the suites of this test file run on a Redis of their own instead of this run's; before they are imported. */
export function runOn(program: RedisProgram): void {
  chosen = program;
}

/** A gateway with the key-value service alone, connected, on this run's Redis or on one of its own. */
export async function startKvGateway(
  program: RedisProgram | undefined = chosen,
  document: Record<string, unknown> = {},
): Promise<RunningGateway> {
  const redis =
    program === undefined ? undefined : await startRedis({ program, password: 'of-the-kv-tests' });
  const environment = redis === undefined ? {} : { PORTICO_REDIS_URL: redis.url };
  try {
    const gateway = await startGateway({ kv: document }, environment);
    const headers = { authorization: `Bearer ${TOKENS.kv}` };
    await eventually(async () => {
      const { status } = await fetch(`${gateway.url}/kv/ping`, { headers });
      if (status !== 200) throw new Error(`no Redis behind the gateway: ${status}`);
    });
    return {
      ...gateway,
      stop: async () => {
        try {
          await gateway.stop();
        } finally {
          await redis?.stop();
        }
      },
    };
  } catch (error) {
    await redis?.stop();
    throw error;
  }
}
