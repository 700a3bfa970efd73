import type { Mount, Service } from '../service.js';
import { routes } from './api/routes.js';
import { WEBHOOK_CREDENTIALS } from './api/webhook.js';
import { BrokerMetrics } from './broker-metrics.js';
import { card, headerAlias, probe } from './card.js';
import { errorReply, formatError } from './errors.js';
import { openCluster } from './open-cluster.js';
import { PeerNetwork } from './peers/peer-network.js';
import { type BrokerConfig, brokerConfig, type ClusterConfig } from './settings.js';

/** Kafka over HTTP: produce, fetch at offsets, consumer groups. */
export const broker: Service<BrokerConfig> = {
  name: 'broker',
  config: brokerConfig,
  routes,
  formatError,
  error: errorReply,
  card,
  probe,
  headerAlias,
  exposedHeaders: ['broker-consumer-state', 'broker-delivery', 'broker-partition-errors'],
  secrets: ({ clusters, peers }) => [
    ...(peers.listen === null ? [] : [{ key: 'broker.peers.secret', value: peers.secret }]),
    ...clusters.flatMap(({ users }, i) =>
      users.map(({ password }, j) => ({
        key: `broker.clusters[${i}].users[${j}].password`,
        value: password,
      })),
    ),
  ],
  addresses: ({ clusters }) =>
    clusters.map(({ brokers }, i) => ({
      backend: 'kafka',
      key: `broker.clusters[${i}].brokers`,
      given: brokers.length > 0,
    })),
  mounts: ({ clusters }) => clusters.map(mountOf),
  open: ({ clusters, peers }, runtime) => {
    const network = new PeerNetwork(peers, runtime);
    const metrics = new BrokerMetrics(runtime.metrics, network);
    const instances = clusters.map((config) => ({
      ...mountOf(config),
      ...openCluster(config, runtime, network, metrics),
    }));
    network.start();
    return instances;
  },
};

function mountOf({ name, path, port, users }: ClusterConfig): Mount {
  const credentials = users.flatMap(({ username, password }) =>
    password === null ? [] : [{ username, password, principal: { name: username, access: 'full' as const } }],
  );
  return { name, path, port, auth: { kind: 'basic', credentials, queryKeys: WEBHOOK_CREDENTIALS } };
}
