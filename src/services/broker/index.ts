import { HttpError } from '../../http/errors.js';
import { bindRoutes } from '../../http/route.js';
import { keepTrying } from '../../lib/keep-trying.js';
import type { Mount, Service, ServiceInstance, ServiceRuntime } from '../service.js';
import { accessByUser } from './access.js';
import { createTopics } from './client.js';
import { Cluster } from './cluster.js';
import { ConsumerInstances } from './consumer-instances.js';
import { Coordinators } from './coordinators.js';
import { makeDeclaredTopics, parseDeclaredTopic } from './declared-topics.js';
import { errorReply, formatError } from './errors.js';
import { Fetcher } from './fetcher.js';
import { LogReader } from './log-reader.js';
import { LogWatch } from './log-watch.js';
import { PeerNetwork } from './peers/peer-network.js';
import { Producer } from './producer.js';
import { RoutedInstances } from './routed-instances.js';
import { routes } from './routes.js';
import { securityOf } from './security.js';
import { type BrokerConfig, brokerConfig, type ClusterConfig } from './settings.js';
import { WEBHOOK_CREDENTIALS } from './webhook.js';

/** Kafka over HTTP: produce, fetch at offsets, consumer groups. */
export const broker: Service<BrokerConfig> = {
  name: 'broker',
  config: brokerConfig,
  routes,
  formatError,
  error: errorReply,
  secrets: ({ clusters, peers }) => [
    ...(peers.listen === null ? [] : [{ key: 'broker.peers.secret', value: peers.secret }]),
    ...clusters.flatMap(({ users }, i) =>
      users.map(({ password }, j) => ({
        key: `broker.clusters[${i}].users[${j}].password`,
        value: password,
      })),
    ),
  ],
  backends: ({ clusters }) => [{ name: 'kafka', given: clusters.every(({ brokers }) => brokers.length > 0) }],
  mounts: ({ clusters }) => clusters.map(mountOf),
  open: ({ clusters, peers }, runtime) => {
    const network = new PeerNetwork(peers, runtime);
    const instances = clusters.map((config) => openCluster(config, runtime, network));
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

/** Closing instances commits and leaves groups, one after the other request of each; in ms. */
const CLOSE_CONSUMERS_MS = 8_000;
/** A produce ends so much before the deadline of its request, in ms, so that the reply tells what became of it. */
const PRODUCE_MARGIN_MS = 1_000;

function openCluster(
  config: ClusterConfig,
  { log, lifecycle, now }: ServiceRuntime,
  network: PeerNetwork,
): ServiceInstance {
  const security = securityOf(config);
  const { brokers, timeoutMs, idleTimeoutMs, sessionTimeoutMs, maxWaitMs } = config;
  const cluster = new Cluster({
    brokers,
    security,
    log,
    lifecycle,
    now,
  });
  const declared = config.topics.map(parseDeclaredTopic);
  const topicsMade = keepTrying(
    () => makeDeclaredTopics(cluster, declared, (missing) => createTopics(brokers, security, missing, log)),
    { name: `broker ${config.name}: declared topics`, log, lifecycle },
  );
  const producer = new Producer(
    cluster,
    Math.max(100, timeoutMs - PRODUCE_MARGIN_MS),
    config.compression,
    now,
  );
  const reader = new LogReader(cluster, new LogWatch(cluster), config.replyBytes);
  const fetcher = new Fetcher(cluster, reader, config.replyBytes);
  const coordinators = new Coordinators(cluster);
  const local = new ConsumerInstances({
    cluster,
    coordinators,
    reader,
    idleTimeoutMs,
    sessionTimeoutMs,
    maxRecords: config.replyRecords,
    maxBytes: config.replyBytes,
    countElsewhere: () => network.instancesElsewhere(config.name),
    log,
    now,
  });
  lifecycle.onStop('consumer instances', () => local.close(), CLOSE_CONSUMERS_MS);
  const { client, rounds } = network;
  const whenReady = () => network.whenReady();
  const consumers = new RoutedInstances({ cluster: config.name, local, client, rounds, whenReady });
  network.add(config.name, {
    instances: consumers,
    count: () => local.count,
    release: () => local.release((name) => consumers.isOwn(name)),
  });
  return {
    ...mountOf(config),
    routes: bindRoutes(routes, {
      cluster,
      access: accessByUser(config.users),
      coordinators,
      producer,
      fetcher,
      consumers,
      maxWaitMs,
    }),
    formatError,
    bodyLimit: config.bodyLimit,
    timeoutMs,
    backends: [
      {
        name: 'kafka',
        check: async () => {
          network.check();
          await cluster.check();
          if (!topicsMade.done)
            throw new HttpError('backend_unavailable', 'declared topics are not made yet');
        },
      },
    ],
  };
}
