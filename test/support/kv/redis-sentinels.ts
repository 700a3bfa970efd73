import { eventually } from '../eventually.js';
import type { RedisOptions } from './redis-configuration.js';
import { startReplica } from './redis-replica.js';
import { RedisServer, startRedis } from './redis-server.js';

export interface SentinelOptions extends RedisOptions {
  /** Default 1. */
  readonly replicas?: number;
  /** Default 3; two of them must agree. */
  readonly sentinels?: number;
  /** Of the Sentinels themselves, which have none otherwise. */
  readonly sentinelPassword?: string;
  /** Silence after which a primary counts as down, in ms; default 500. */
  readonly downAfterMs?: number;
}

/** A primary with replicas, watched by Sentinels. */
export interface SentinelGroup {
  /** The name that clients ask the Sentinels for. */
  readonly name: string;
  readonly sentinels: readonly RedisServer[];
  /** The primary of the beginning first, then the replicas. */
  readonly servers: readonly RedisServer[];
  /** The server that the Sentinels name as primary now. */
  primary(): Promise<RedisServer>;
  stop(): Promise<void>;
}

const NAME = 'portico';

/** Sentinel's own pace would take 10 s to find a replica and 2 s to find another Sentinel. */
const PACE = ['info-period', '300', 'publish-period', '200', 'ping-period', '100', 'ask-period', '200'];

function sentinelLines(primary: RedisServer, options: SentinelOptions): string[] {
  const { password, sentinelPassword, downAfterMs = 2_000 } = options;
  return [
    `sentinel monitor ${NAME} 127.0.0.1 ${primary.port} 2`,
    `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
    `sentinel failover-timeout ${NAME} 5000`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${NAME} ${password}`]),
    ...(sentinelPassword === undefined ? [] : [`sentinel sentinel-pass ${sentinelPassword}`]),
  ];
}

async function startSentinel(primary: RedisServer, options: SentinelOptions): Promise<RedisServer> {
  const { program, tls, sentinelPassword } = options;
  const own: RedisOptions = {
    ...(program === undefined ? {} : { program }),
    ...(tls === undefined ? {} : { tls }),
    ...(primary.certificates === undefined ? {} : { certificates: primary.certificates }),
    ...(sentinelPassword === undefined ? {} : { password: sentinelPassword }),
    config: sentinelLines(primary, options),
  };
  const sentinel = await RedisServer.start(own, true);
  await sentinel.command('SENTINEL', 'DEBUG', ...PACE);
  return sentinel;
}

/** What a Sentinel knows of the primary, as an object. */
async function view(sentinel: RedisServer): Promise<Record<string, string>> {
  const flat = (await sentinel.command('SENTINEL', 'MASTER', NAME)) as string[];
  return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? '']] : [])));
}

async function knowEachOther(sentinels: readonly RedisServer[], replicas: number): Promise<void> {
  await eventually(async () => {
    for (const sentinel of sentinels) {
      const seen = await view(sentinel);
      const complete =
        Number(seen['num-slaves']) === replicas &&
        Number(seen['num-other-sentinels']) === sentinels.length - 1;
      if (!complete || seen.flags !== 'master') throw new Error(`a Sentinel sees ${JSON.stringify(seen)}`);
      await sentinel.command('SENTINEL', 'CKQUORUM', NAME);
    }
  });
}

/** Starts a primary, replicas and Sentinels; resolves when all know of each other, so that a failover would succeed. */
export async function startSentinels(options: SentinelOptions = {}): Promise<SentinelGroup> {
  const { replicas = 1, sentinels: count = 3, sentinelPassword: _, downAfterMs: __, ...own } = options;
  const servers: RedisServer[] = [];
  const sentinels: RedisServer[] = [];
  const stop = async () => {
    await Promise.all([...sentinels, ...servers].map((server) => server.stop()));
  };
  try {
    // a primary becomes a replica after a failover and then needs the password of the new one
    const login = own.password === undefined ? [] : [`masterauth "${own.password}"`];
    const primary = await startRedis({ ...own, config: [...login, ...(own.config ?? [])] });
    servers.push(primary);
    for (let i = 0; i < replicas; i++) servers.push(await startReplica(primary));
    for (let i = 0; i < count; i++) sentinels.push(await startSentinel(primary, options));
    await knowEachOther(sentinels, replicas);
  } catch (error) {
    await stop();
    throw error;
  }
  const current = async () => {
    const address = (await sentinels[0]?.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as string[];
    const found = servers.find(({ port }) => port === Number(address[1]));
    if (found === undefined) throw new Error(`the Sentinels name a stranger: ${address.join(':')}`);
    return found;
  };
  return { name: NAME, sentinels, servers, primary: current, stop };
}
