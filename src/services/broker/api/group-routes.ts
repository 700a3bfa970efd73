import type { Route } from '../../../http/route.js';
import type { BrokerDeps } from '../deps.js';
import { groupLag, seekGroup } from '../group/group-positions.js';
import * as schemas from '../schemas.js';
import { accessOf, brokerRoute } from './broker-route.js';

/** Where groups are in their logs, whether or not an instance of theirs lives. */
export const groupRoutes: readonly Route<BrokerDeps>[] = [
  brokerRoute({
    operationId: 'broker.groups',
    summary:
      'Consumer groups of the user with their state and members, whatever client they are of, by name.',
    methods: ['GET'],
    path: '/groups',
    request: { query: schemas.groupsQuery },
    reply: schemas.groupsReply,
    errors: [400, 401, 403, 503, 504],
    handle: async ({ query: { after, limit } }, context, deps) => {
      const access = accessOf(context, deps);
      access.checkConsume([]);
      const own = (name: string) => access.ownGroup(name);
      const from = after === undefined ? '' : access.kafkaGroup(after);
      const found = await deps.groups.window((name) => own(name) !== undefined, from, limit);
      const groups = found.groups.map((group) => ({ ...group, name: own(group.name) as string }));
      const cursor = found.hasMore ? groups.at(-1)?.name : undefined;
      return { groups, ...(cursor === undefined ? {} : { cursor }) } as never;
    },
  }),
  brokerRoute({
    operationId: 'broker.lag',
    summary: 'Records between what a group has committed and the end, by partition.',
    methods: ['GET'],
    path: '/lag/:group',
    request: { params: schemas.onlyGroupParams, query: schemas.topicQuery },
    reply: schemas.lagReply,
    errors: [400, 401, 403, 503, 504],
    handle: async ({ params, query: { topic } }, context, deps) => {
      const access = accessOf(context, deps);
      access.checkConsume(topic === undefined ? [] : [topic]);
      const isWanted = (name: string) => (topic === undefined ? access.mayName(name) : name === topic);
      return groupLag(deps, access.kafkaGroup(params.group), isWanted);
    },
  }),
  brokerRoute({
    operationId: 'broker.seek',
    audit: 'administrative',
    summary:
      'Sets where a group without instances goes on: an offset of a partition, or earliest, latest or a time of all or one.',
    methods: ['POST'],
    changesData: true,
    path: '/seek/:group',
    request: { params: schemas.onlyGroupParams, body: schemas.seekBody },
    reply: schemas.topicPartitionOffsetsReply,
    errors: [400, 401, 403, 404, 409, 503, 504],
    handle: async ({ params, body }, context, deps) => {
      const access = accessOf(context, deps);
      access.checkConsume(body.map(({ topic }) => topic));
      return seekGroup(deps, access.kafkaGroup(params.group), body);
    },
  }),
];
