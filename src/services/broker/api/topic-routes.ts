import type { Route } from '../../../http/route.js';
import type { BrokerDeps } from '../deps.js';
import * as schemas from '../schemas.js';
import { accessOf, brokerRoute } from './broker-route.js';

const SUCCESS = { result: 'Success', status: 200 } as const;
const errors = [400, 401, 403, 404, 409, 503, 504] as const;

/** Topics made, described, changed and deleted, by users who may. */
export const topicRoutes: readonly Route<BrokerDeps>[] = [
  brokerRoute({
    operationId: 'broker.describeTopic',
    summary: 'Partitions of a topic with their replicas, and what was configured for it.',
    methods: ['GET'],
    path: '/topics/:topic',
    request: { params: schemas.topicParams },
    reply: schemas.topicReply,
    errors,
    handle: async ({ params: { topic } }, context, deps) => {
      accessOf(context, deps).checkNames([topic]);
      return deps.topics.describe(topic, context.signal);
    },
  }),
  brokerRoute({
    operationId: 'broker.createTopic',
    audit: 'administrative',
    summary: 'Makes a topic. What the body leaves out is the default of the brokers.',
    methods: ['POST'],
    changesData: true,
    path: '/topics/:topic',
    request: { params: schemas.topicParams, body: schemas.topicBody },
    reply: schemas.successReply,
    errors,
    handle: async ({ params: { topic }, body }, context, deps) => {
      accessOf(context, deps).checkAdminister(topic);
      await deps.topics.create(topic, body, context.signal);
      return SUCCESS;
    },
  }),
  brokerRoute({
    operationId: 'broker.changeTopic',
    audit: 'administrative',
    summary: 'Adds partitions to a topic, or configures it; null is the default of the brokers.',
    methods: ['PATCH'],
    changesData: true,
    path: '/topics/:topic',
    request: { params: schemas.topicParams, body: schemas.topicChangesBody },
    reply: schemas.successReply,
    errors,
    handle: async ({ params: { topic }, body }, context, deps) => {
      accessOf(context, deps).checkAdminister(topic);
      await deps.topics.change(topic, body, context.signal);
      return SUCCESS;
    },
  }),
  brokerRoute({
    operationId: 'broker.deleteTopic',
    audit: 'destructive',
    summary: 'Deletes a topic with its records.',
    methods: ['DELETE'],
    changesData: true,
    path: '/topics/:topic',
    request: { params: schemas.topicParams },
    reply: schemas.successReply,
    errors,
    handle: async ({ params: { topic } }, context, deps) => {
      accessOf(context, deps).checkAdminister(topic);
      await deps.topics.delete(topic, context.signal);
      return SUCCESS;
    },
  }),
];
