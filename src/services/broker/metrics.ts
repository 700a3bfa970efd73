import type { MetricRegistry, MetricSample } from '../../lib/metric-source.js';
import type { ClusterCounters } from './cluster-counters.js';
import type { ConsumerInstances } from './group/consumer-instances.js';
import type { PeerNetwork } from './peers/peer-network.js';

/** What the metrics of one cluster are read from. */
export interface WatchedCluster {
  readonly name: string;
  readonly instances: ConsumerInstances;
  readonly counters: ClusterCounters;
}

/** Metrics of all clusters. */
export class BrokerMetrics {
  private readonly clusters: WatchedCluster[] = [];

  constructor(registry: MetricRegistry, network: PeerNetwork) {
    const counter = (name: string, help: string, read: (counters: ClusterCounters) => number) =>
      registry.add({
        name,
        help,
        type: 'counter',
        collect: () => this.each(({ counters }) => read(counters)),
      });
    registry.add({
      name: 'portico_broker_instances',
      help: 'Consumer instances that live here, not in another gateway or worker.',
      type: 'gauge',
      collect: () => this.each(({ instances }) => instances.count),
    });
    registry.add({
      name: 'portico_broker_group_lag_records',
      help: 'Records between what was handed out and the end of the log as it was last seen, by group (as Kafka knows it).',
      type: 'gauge',
      collect: () => this.lags(),
    });
    registry.add({
      name: 'portico_broker_peers',
      help: 'Other gateways, and other workers of this one, that live.',
      type: 'gauge',
      collect: () =>
        network.rounds.map(({ hop, peers }) => ({ labels: { kind: hop }, value: peers.others.length })),
    });
    counter(
      'portico_broker_joins_total',
      'Times that an instance has joined its group.',
      ({ joins }) => joins,
    );
    counter(
      'portico_broker_rebalances_total',
      'Times that an instance had to join anew, or lost its group.',
      ({ rebalances }) => rebalances,
    );
    counter(
      'portico_broker_forwarded_total',
      'Requests for an instance that went to the gateway that has it.',
      ({ forwarded }) => forwarded,
    );
    counter(
      'portico_broker_produced_records_total',
      'Records that were sent to Kafka; divided by the sends, how many went together.',
      ({ records }) => records,
    );
    counter(
      'portico_broker_produce_failed_records_total',
      'Records of produce requests that were not written, or are not known to be.',
      ({ unproduced }) => unproduced,
    );
    counter(
      'portico_broker_consumed_records_total',
      'Records that consumer instances handed out in replies that went out.',
      ({ consumed }) => consumed,
    );
    counter(
      'portico_broker_commit_failures_total',
      'Commits of offsets that Kafka did not take.',
      ({ failedCommits }) => failedCommits,
    );
    counter('portico_broker_produce_sends_total', 'Produce requests to Kafka.', ({ sends }) => sends);
  }

  watch(cluster: WatchedCluster): void {
    this.clusters.push(cluster);
  }

  private each(read: (cluster: WatchedCluster) => number): MetricSample[] {
    return this.clusters.map((cluster) => ({ labels: { cluster: cluster.name }, value: read(cluster) }));
  }

  private lags(): MetricSample[] {
    return this.clusters.flatMap(({ name, instances }) =>
      [...instances.lags()].map(([group, value]) => ({ labels: { cluster: name, group }, value })),
    );
  }
}
