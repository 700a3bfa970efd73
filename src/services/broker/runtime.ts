import { HttpError } from '../../http/errors.js';
import { bindRoutes } from '../../http/route.js';
import { keepTrying } from '../../lib/keep-trying.js';
import { LightWork } from '../../lib/light-work.js';
import type { ServiceInstance, ServiceRuntime } from '../service.js';
import { AccessTable } from './access.js';
import { ClusterCounters } from './cluster-counters.js';
import type { BrokerDeps } from './deps.js';
import { changedNothing, formatError, refusalOf } from './errors.js';
import { ConsumerInstances } from './group/consumer-instances.js';
import { Coordinators } from './group/coordinators.js';
import { InstanceShares } from './group/instance-shares.js';
import { type ClientOptions, createTopics } from './kafka/client.js';
import { Cluster } from './kafka/cluster.js';
import { makeDeclaredTopics, parseDeclaredTopic } from './kafka/declared-topics.js';
import { GroupList } from './kafka/group-list.js';
import { securityOf } from './kafka/security.js';
import { TopicAdmin } from './kafka/topic-admin.js';
import { BrokerMetrics } from './metrics.js';
import { mountOf } from './mount.js';
import { PeerNetwork } from './peers/peer-network.js';
import { Producer } from './produce/producer.js';
import { Fetcher } from './read/fetcher.js';
import { LogReader } from './read/log-reader.js';
import { LogWatch } from './read/log-watch.js';
import { Unpacking } from './records/decompress.js';
import { routes } from './routes.js';
import type { BrokerSettings, ClusterSettings } from './settings.js';

/** Closing instances commits and leaves groups, one after the other request of each; in ms. */
const CLOSE_CONSUMERS_MS = 8_000;
/** A produce ends so much before the deadline of its request, in ms, so that the reply tells what became of it. */
const PRODUCE_MARGIN_MS = 1_000;

/** Connects every cluster in the background. */
export function openBroker(
  { clusters, peers }: BrokerSettings,
  runtime: ServiceRuntime<BrokerSettings>,
): readonly ServiceInstance[] {
  const network = new PeerNetwork(peers, runtime);
  const metrics = new BrokerMetrics(runtime.metrics, network);
  const instances = clusters.map((config) => openCluster(config, runtime, network, metrics));
  network.start();
  return instances;
}

function openCluster(
  config: ClusterSettings,
  runtime: ServiceRuntime<BrokerSettings>,
  network: PeerNetwork,
  metrics: BrokerMetrics,
): ServiceInstance {
  const { log, lifecycle, now } = runtime;
  const { brokers, connectTimeoutMs, timeoutMs } = config;
  const security = securityOf(config, runtime);
  const cluster = new Cluster({ brokers, security, connectTimeoutMs, log, lifecycle, now });
  const client = { brokers, security, connectTimeoutMs, log };
  const declared = config.topics.map(parseDeclaredTopic);
  const topicsMade = keepTrying(
    () => makeDeclaredTopics(cluster, declared, (missing) => createTopics(client, missing)),
    { name: `broker ${config.name}: declared topics`, log, lifecycle },
  );
  const check = async () => {
    network.check();
    await cluster.check().catch((error: unknown) => {
      const refusal = refusalOf(error);
      throw refusal === undefined ? error : new HttpError('backend_unavailable', refusal, { cause: error });
    });
    if (!topicsMade.done) throw new HttpError('backend_unavailable', 'declared topics are not made yet');
  };
  return {
    ...mountOf(config),
    routes: bindRoutes(routes, depsOf(config, cluster, client, runtime, network, metrics)),
    formatError,
    bodyLimit: config.bodyLimit,
    timeoutMs,
    backends: [{ name: 'kafka', check }],
    ...(config.idempotencyWindow === 0
      ? {}
      : {
          idempotency: {
            calls: runtime.keptCalls,
            windowMs: config.idempotencyWindow * 1_000,
            changedNothing,
          },
        }),
  };
}

function depsOf(
  config: ClusterSettings,
  cluster: Cluster,
  client: ClientOptions,
  runtime: ServiceRuntime<BrokerSettings>,
  network: PeerNetwork,
  metrics: BrokerMetrics,
): BrokerDeps {
  const { log, lifecycle, now } = runtime;
  const { timeoutMs, replyBytes, replyRecords, idleTimeoutMs, sessionTimeoutMs, maxWaitMs } = config;
  const { access, shares } = accessOf(config, runtime);
  const counters = new ClusterCounters();
  const reader = new LogReader(
    cluster,
    new LogWatch(cluster),
    replyBytes,
    new Unpacking(config.unpackedBytes),
  );
  const coordinators = new Coordinators(cluster);
  const local = new ConsumerInstances({
    cluster,
    coordinators,
    reader,
    idleTimeoutMs,
    sessionTimeoutMs,
    redeliver: config.redeliver,
    limits: { maxRecords: replyRecords, maxBytes: replyBytes },
    shares,
    countElsewhere: (owner) => network.instancesElsewhere(config.name, owner),
    counters,
    log,
    now,
  });
  lifecycle.onStop('consumer instances', () => local.close(), CLOSE_CONSUMERS_MS);
  metrics.watch({ name: config.name, instances: local, counters });
  const light = new LightWork();
  const produceMs = Math.max(100, timeoutMs - PRODUCE_MARGIN_MS);
  return {
    cluster,
    access,
    coordinators,
    topics: new TopicAdmin(cluster, client),
    groups: new GroupList(client),
    producer: new Producer(cluster, produceMs, config.compression, counters, now, light),
    fetcher: new Fetcher(cluster, reader, replyBytes, light),
    consumers: network.join(config.name, local, counters),
    maxWaitMs,
    tracer: runtime.tracer,
  };
}

/** What each user may do, as the configuration has it now. */
function accessOf({ name, users }: ClusterSettings, { onReload }: ServiceRuntime<BrokerSettings>) {
  const access = new AccessTable(users);
  const shares = new InstanceShares(access.values());
  onReload(({ clusters }) => {
    access.change(clusters.find((other) => other.name === name)?.users ?? users);
    shares.divide(access.values());
  });
  return { access, shares };
}
