import { eventually } from '../eventually.js';
import { freePort } from '../free-port.js';
import type { RedisOptions } from './redis-configuration.js';
import { inSync } from './redis-replica.js';
import { type RedisServer, startRedis } from './redis-server.js';

export interface ClusterOptions extends RedisOptions {
  /** Default 3. */
  readonly primaries?: number;
  /** Of each primary; default 0. */
  readonly replicas?: number;
  /** Silence after which a node counts as down, in ms; default 4,000. */
  readonly nodeTimeoutMs?: number;
}

export interface RedisCluster {
  /** They share the 16,384 slots evenly, in this order. */
  readonly primaries: readonly RedisServer[];
  /** Of the first primary first. */
  readonly replicas: readonly RedisServer[];
  /** Any one of them, for clients that find the others by themselves. */
  readonly url: string;
  stop(): Promise<void>;
}

const SLOTS = 16_384;

interface Node {
  readonly server: RedisServer;
  readonly busPort: number;
}

async function startNode(options: ClusterOptions, first: RedisServer | undefined): Promise<Node> {
  const { primaries: _, replicas: __, nodeTimeoutMs = 4_000, ...own } = options;
  const busPort = await freePort();
  const server = await startRedis({
    ...own,
    ...(first?.certificates === undefined ? {} : { certificates: first.certificates }),
    config: [
      'cluster-enabled yes',
      `cluster-port ${busPort}`,
      `cluster-node-timeout ${nodeTimeoutMs}`,
      ...(own.password === undefined ? [] : [`masterauth "${own.password}"`]),
      ...(own.config ?? []),
    ],
  });
  return { server, busPort };
}

const nodeId = async (server: RedisServer) => String(await server.command('CLUSTER', 'MYID'));

/** Waits until every node knows all of them and counts the cluster as working. */
async function agree(servers: readonly RedisServer[]): Promise<void> {
  await eventually(async () => {
    for (const server of servers) {
      const info = String(await server.command('CLUSTER', 'INFO'));
      const known = Number(/cluster_known_nodes:(\d+)/.exec(info)?.[1]);
      if (known !== servers.length || !/cluster_state:ok/.test(info))
        throw new Error(`no cluster of ${servers.length} nodes: ${info}`);
    }
  });
}

async function joinSlots(nodes: readonly Node[], primaries: number): Promise<void> {
  for (const [i, { server, busPort }] of nodes.entries()) {
    await server.command('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    const [from, to] = [i, i + 1].map((place) => Math.floor((place * SLOTS) / primaries));
    if (i < primaries) await server.command('CLUSTER', 'ADDSLOTSRANGE', from as number, (to as number) - 1);
    if (i > 0) await nodes[0]?.server.command('CLUSTER', 'MEET', '127.0.0.1', server.port, busPort);
  }
  await agree(nodes.map(({ server }) => server));
}

async function follow(replica: RedisServer, primary: RedisServer): Promise<void> {
  await replica.command('CLUSTER', 'REPLICATE', await nodeId(primary));
  await inSync(replica);
}

/** Starts a Redis Cluster; resolves when every node serves and every replica has its primary's data. */
export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { primaries = 3, replicas = 0 } = options;
  const nodes: Node[] = [];
  const stop = async () => {
    await Promise.all(nodes.map(({ server }) => server.stop()));
  };
  try {
    while (nodes.length < primaries * (1 + replicas)) nodes.push(await startNode(options, nodes[0]?.server));
    await joinSlots(nodes, primaries);
    const servers = nodes.map(({ server }) => server);
    for (const [i, replica] of servers.slice(primaries).entries())
      await follow(replica, servers[Math.floor(i / replicas)] as RedisServer);
    return {
      primaries: servers.slice(0, primaries),
      replicas: servers.slice(primaries),
      url: (servers[0] as RedisServer).url,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
