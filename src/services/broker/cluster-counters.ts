/** What has happened with one cluster since the start. */
export class ClusterCounters {
  joins = 0;
  rebalances = 0;
  /** Requests that another gateway answered. */
  forwarded = 0;
  /** Sent to Kafka; `sends` requests held them. */
  records = 0;
  sends = 0;
  /** Not written, or not known to be. */
  unproduced = 0;
  /** Handed out in replies that went out. */
  consumed = 0;
  /** Commits that Kafka did not take, repeated ones each. */
  failedCommits = 0;
}
