import { JsonText, Reply, type Route } from '../../../http/route.js';
import type { BrokerDeps } from '../deps.js';
import type { PartitionError } from '../read/fetcher.js';
import * as schemas from '../schemas.js';
import { accessOf, brokerRoute, DEFAULT_WAIT_MS, deadlineFor } from './broker-route.js';

/** Entries in the header that tells of partitions which could not be read: a header must stay small. */
const TOLD_ERRORS = 20;

export const readRoutes: readonly Route<BrokerDeps>[] = [
  brokerRoute({
    operationId: 'broker.fetch',
    summary: 'Reads records at given offsets, without a consumer group.',
    methods: ['GET', 'POST'],
    path: '/fetch',
    request: { headers: schemas.encodingHeader, body: schemas.fetchBody },
    reply: schemas.messagesReply,
    errors: [400, 401, 403, 404, 429, 503, 504],
    timeoutMs: ({ body }) => deadlineFor(body.timeout),
    handle: async ({ headers, body }, context, deps) => {
      const { fetcher, maxWaitMs } = deps;
      const { topic, partition, offset, topicPartitionOffsets, timeout, limit, max_bytes: maxBytes } = body;
      const positions = [...(topicPartitionOffsets ?? [])];
      if (topic !== undefined && partition !== undefined)
        positions.push({ topic, partition, offset: offset ?? 0 });
      const access = accessOf(context, deps);
      access.checkConsume(positions.map((position) => position.topic));
      access.quota?.check();
      const fetch = () =>
        fetcher.fetch(positions, {
          user: context.principal.name,
          form: {
            maxRecords: limit ?? Number.POSITIVE_INFINITY,
            maxBytes: maxBytes ?? Number.POSITIVE_INFINITY,
            isBase64: headers['broker-encoding'],
          },
          timeoutMs: Math.min(timeout ?? DEFAULT_WAIT_MS, maxWaitMs),
          signal: context.signal,
          stopping: context.stopping,
        });
      const { messages, count, errors } = await (deps.tracer === undefined
        ? fetch()
        : deps.tracer.within('kafka fetch', { 'messaging.system': 'kafka' }, fetch));
      access.quota?.spend(count, messages.length);
      const text = new JsonText(messages);
      return errors.length === 0 ? text : new Reply(200, text, toldErrors(errors));
    },
  }),
  brokerRoute({
    operationId: 'broker.topics',
    summary: 'Names of the topics that the user may use, with their numbers of partitions.',
    methods: ['GET'],
    path: '/topics',
    request: {},
    reply: schemas.topicsReply,
    errors: [401, 503],
    handle: async (_input, context, deps) => {
      const access = accessOf(context, deps);
      const topics = (await deps.cluster.allTopics()).filter(({ name }) => access.mayName(name));
      return Object.fromEntries(topics.map(({ name, partitions }) => [name, partitions.length]));
    },
  }),
];

function toldErrors(errors: readonly PartitionError[]): Record<string, string> {
  const told = errors.slice(0, TOLD_ERRORS).map(({ topic, partition, offset, error }) => ({
    topic,
    partition,
    offset,
    error: error.message,
    status: error.status,
  }));
  return { 'Broker-Partition-Errors': JSON.stringify(told) };
}
