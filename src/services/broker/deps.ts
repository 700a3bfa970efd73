import type { Tracer } from '../../lib/traces/tracer.js';
import type { AccessTable } from './access.js';
import type { Coordinators } from './group/coordinators.js';
import type { Cluster } from './kafka/cluster.js';
import type { GroupList } from './kafka/group-list.js';
import type { TopicAdmin } from './kafka/topic-admin.js';
import type { RoutedInstances } from './peers/routed-instances.js';
import type { Producer } from './produce/producer.js';
import type { Fetcher } from './read/fetcher.js';

/** What the routes of one cluster work with. */
export interface BrokerDeps {
  readonly cluster: Cluster;
  readonly access: AccessTable;
  readonly coordinators: Coordinators;
  readonly topics: TopicAdmin;
  readonly groups: GroupList;
  readonly producer: Producer;
  readonly fetcher: Fetcher;
  readonly consumers: RoutedInstances;
  /** Longest wait of a fetch or consume, in ms. */
  readonly maxWaitMs: number;
  /** Where traces are wanted. */
  readonly tracer: Tracer | undefined;
}
