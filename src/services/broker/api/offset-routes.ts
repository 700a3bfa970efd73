import type { Route } from '../../../http/route.js';
import type { BrokerDeps } from '../deps.js';
import { committedOffsets } from '../group/group-offsets.js';
import { existingPartitions, partitionKey } from '../kafka/partitions.js';
import { offsetsAt } from '../read/topic-offsets.js';
import * as schemas from '../schemas.js';
import { accessOf, brokerRoute, OFFSETS_WAIT_MS, waitOf } from './broker-route.js';

const errors = [400, 401, 403, 404, 503, 504] as const;

export const offsetRoutes: readonly Route<BrokerDeps>[] = [
  brokerRoute({
    operationId: 'broker.committed',
    summary: 'Offsets that a group has committed; -1 where it has none.',
    methods: ['GET', 'POST'],
    path: '/committed/:group/:instance',
    request: {
      params: schemas.groupParams,
      query: schemas.timeoutQuery,
      body: schemas.topicPartitionsBody,
    },
    reply: schemas.topicPartitionOffsetsReply,
    errors,
    timeoutMs: ({ query }) => waitOf(query.timeout, OFFSETS_WAIT_MS),
    handle: async ({ params, body }, context, deps) => {
      const access = accessOf(context, deps);
      access.checkConsume(body.map(({ topic }) => topic));
      const group = access.kafkaGroup(params.group);
      await existingPartitions(deps.cluster, body);
      return committedOffsets(deps.coordinators, group, body);
    },
  }),
  brokerRoute({
    operationId: 'broker.offsets',
    summary: 'Offset of the first record that is not older than a time, or of an end of the log.',
    methods: ['GET', 'POST'],
    path: '/offsets/:timestamp',
    request: {
      params: schemas.timestampParams,
      query: schemas.timeoutQuery,
      body: schemas.topicPartitionsBody,
    },
    reply: schemas.topicPartitionOffsetsReply,
    errors,
    timeoutMs: ({ query }) => waitOf(query.timeout, OFFSETS_WAIT_MS),
    handle: async ({ params, body }, context, deps) => {
      const { cluster } = deps;
      accessOf(context, deps).checkNames(body.map(({ topic }) => topic));
      await existingPartitions(cluster, body);
      const offsets = await offsetsAt(cluster, body, params.timestamp);
      return body.map(({ topic, partition }) => {
        const offset = offsets.get(partitionKey({ topic, partition }));
        if (offset === undefined) throw new Error('every partition was asked about');
        return { topic, partition, offset };
      });
    },
  }),
];
