/** What is known of a topic. */
export interface Topic {
  readonly name: string;
  readonly isInternal: boolean;
  /** By id, from 0 without gaps; `leader` is -1 where there is none at present. */
  readonly partitions: readonly { readonly id: number; readonly leader: number }[];
}

/** Decoded Metadata reply (version 5 and 6). */
export interface MetadataReply {
  readonly brokers: readonly { readonly nodeId: number; readonly host: string; readonly port: number }[];
  readonly topicMetadata: readonly {
    readonly topicErrorCode: number;
    readonly topic: string;
    readonly isInternal: boolean;
    readonly partitionMetadata: readonly { readonly partitionId: number; readonly leader: number }[];
  }[];
}

const OK = 0;
const LEADER_NOT_AVAILABLE = 5;

/** The topics of a reply that exist; one whose election is still going on is there, without a leader. */
export function topicsOf(reply: MetadataReply): Topic[] {
  return reply.topicMetadata
    .filter(({ topicErrorCode }) => topicErrorCode === OK || topicErrorCode === LEADER_NOT_AVAILABLE)
    .map(({ topic, isInternal, partitionMetadata }) => ({
      name: topic,
      isInternal,
      partitions: partitionMetadata
        .map(({ partitionId, leader }) => ({ id: partitionId, leader }))
        .sort((a, b) => a.id - b.id),
    }));
}
