import { JsonText, Reply, type Route, type RouteContext } from '../../../http/route.js';
import { deadlineOf } from '../../../lib/deadline.js';
import type { Access } from '../access.js';
import type { BrokerDeps } from '../deps.js';
import type { InstanceName } from '../group/instance-state.js';
import type { RoutedInstances } from '../peers/routed-instances.js';
import * as schemas from '../schemas.js';
import { accessOf, brokerRoute, DEFAULT_WAIT_MS, deadlineFor } from './broker-route.js';

const SUCCESS = { result: 'Success', status: 200 } as const;
const consumeErrors = [400, 401, 403, 404, 409, 429, 503, 504] as const;

export const consumerRoutes: readonly Route<BrokerDeps>[] = [
  brokerRoute({
    operationId: 'broker.consume',
    summary: 'Reads on as an instance of a consumer group, which the first call makes.',
    methods: ['GET', 'POST'],
    changesData: true,
    path: '/consume/:group/:instance',
    request: {
      params: schemas.groupParams,
      headers: schemas.consumerHeaders,
      body: schemas.consumeBody,
    },
    reply: schemas.messagesReply,
    errors: consumeErrors,
    timeoutMs: ({ body }) => deadlineFor(body.timeout),
    handle: ({ params, headers, body }, context, deps) => {
      const { topic, topics, timeout, limit, max_bytes: maxBytes } = body;
      const wanted = [...(topics ?? []), ...(topic === undefined ? [] : [topic])];
      return consume(params, wanted, { ...headers, limit, maxBytes }, timeout, context, deps);
    },
  }),
  brokerRoute({
    operationId: 'broker.consumeTopic',
    summary: 'The same for one topic, without a body.',
    methods: ['GET'],
    changesData: true,
    path: '/consume/:group/:instance/:topic',
    request: {
      params: schemas.groupTopicParams,
      query: schemas.consumeQuery,
      headers: schemas.consumerHeaders,
    },
    reply: schemas.messagesReply,
    errors: consumeErrors,
    timeoutMs: ({ query }) => deadlineFor(query.timeout),
    handle: ({ params, query, headers }, context, deps) => {
      const { timeout, limit, max_bytes: maxBytes } = query;
      return consume(params, [params.topic], { ...headers, limit, maxBytes }, timeout, context, deps);
    },
  }),
  brokerRoute({
    operationId: 'broker.commit',
    summary: 'Commits the given offsets, or what the instance was last given.',
    methods: ['GET', 'POST'],
    changesData: true,
    path: '/commit/:group/:instance',
    request: { params: schemas.groupParams, headers: schemas.commitHeaders, body: schemas.commitBody },
    reply: schemas.successReply,
    errors: consumeErrors,
    handle: async ({ params, headers, body: positions }, context, deps) => {
      const access = accessOf(context, deps);
      access.checkConsume(positions.map(({ topic }) => topic));
      const acknowledged = headers['broker-acknowledge'];
      await deps.consumers.commit(nameIn(access, params), { positions, acknowledged }, context.signal);
      return SUCCESS;
    },
  }),
  brokerRoute({
    operationId: 'broker.deleteConsumer',
    summary: 'Stops an instance: it commits, if it does so by itself, and leaves its group.',
    methods: ['POST', 'DELETE'],
    changesData: true,
    path: '/delete-consumer/:group/:instance',
    request: { params: schemas.groupParams },
    reply: schemas.successReply,
    errors: [400, 401, 403, 404],
    handle: async ({ params }, context, deps) => {
      const access = accessOf(context, deps);
      access.checkConsume([]);
      await deps.consumers.remove(nameIn(access, params), context.signal);
      return SUCCESS;
    },
  }),
  brokerRoute({
    operationId: 'broker.consumers',
    summary: 'Groups and instances of the user with the partitions they have.',
    methods: ['GET'],
    path: '/consumers',
    request: {},
    reply: schemas.consumersReply,
    errors: [401],
    handle: async (_input, context, deps) => {
      const access = accessOf(context, deps);
      return deps.consumers.list((group) => access.ownGroup(group), context.signal);
    },
  }),
];

async function consume(
  params: InstanceName,
  topics: readonly string[],
  wishes: schemas.ConsumeWishes,
  timeout: number | undefined,
  context: RouteContext,
  deps: BrokerDeps,
): Promise<Reply> {
  const { consumers, maxWaitMs } = deps;
  const access = accessOf(context, deps);
  access.checkConsume(topics);
  const name = nameIn(access, params);
  access.quota?.check();
  const waitMs = Math.min(timeout ?? DEFAULT_WAIT_MS, maxWaitMs);
  const gone = deadlineOf(undefined, context.signal, context.stopping);
  const deadline = deadlineOf(waitMs, gone.signal);
  const wait = { ms: waitMs, signal: deadline.signal, gone: gone.signal };
  const consumed = await consumers.consume(name, topics, wishes, wait).finally(() => {
    deadline.release();
    gone.release();
  });
  access.quota?.spend(consumed.count, consumed.messages.length);
  context.onOver(consumed.settle, () => {
    if (consumed.delivery !== undefined) void takeBack(name, consumed.delivery, context, consumers);
  });
  return new Reply(200, new JsonText(consumed.messages), {
    'Broker-Consumer-State': consumed.isJoined ? 'joined' : 'joining',
    ...(consumed.delivery === undefined ? {} : { 'Broker-Delivery': consumed.delivery }),
  });
}

/** The reply went out, and the client broke the connection without having read it. */
async function takeBack(
  name: InstanceName,
  delivery: string,
  { log }: RouteContext,
  consumers: RoutedInstances,
): Promise<void> {
  try {
    await consumers.takeBack(name, delivery, new AbortController().signal);
  } catch (err) {
    log.warn({ err }, 'records that a client did not read cannot be taken back');
  }
}

function nameIn(access: Access, { group, instance }: InstanceName): InstanceName {
  return { group: access.kafkaGroup(group), instance };
}
