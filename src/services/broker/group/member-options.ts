import type { Logger } from '../../../lib/logger.js';
import type { ClusterCounters } from '../cluster-counters.js';
import type { Cluster } from '../kafka/cluster.js';
import type { LogReader } from '../read/log-reader.js';
import type { ConsumerHeaders } from '../schemas.js';
import type { Coordinators } from './coordinators.js';
import type { OffsetReset } from './start-offsets.js';

export interface MemberOptions {
  readonly cluster: Cluster;
  readonly coordinators: Coordinators;
  readonly reader: LogReader;
  /** As Kafka knows it. */
  readonly group: string;
  readonly instance: string;
  readonly topics: readonly string[];
  readonly offsetReset: OffsetReset;
  /** `undefined`: positions are committed on request only. */
  readonly commitIntervalMs: number | undefined;
  readonly sessionTimeoutMs: number;
  /** Of this member: the others of its group in this process are told, so that they need not wait for a heartbeat. */
  readonly onJoining: () => void;
  readonly counters: ClusterCounters;
  readonly log: Logger;
  readonly now: () => number;
}

/** What the headers of the consume that makes an instance choose. @param sessionTimeoutMs where they do not */
export function chosenBy(
  headers: ConsumerHeaders,
  sessionTimeoutMs: number,
): Pick<MemberOptions, 'offsetReset' | 'commitIntervalMs' | 'sessionTimeoutMs'> {
  return {
    offsetReset: headers['broker-auto-offset-reset'],
    commitIntervalMs: headers['broker-enable-auto-commit']
      ? headers['broker-auto-commit-interval']
      : undefined,
    sessionTimeoutMs: headers['broker-session-timeout-ms'] ?? sessionTimeoutMs,
  };
}
