import { JsonText, type Route, type RouteContext } from '../../../http/route.js';
import { arrayText } from '../../../lib/json/json-text.js';
import { inSlices } from '../../../lib/slices.js';
import type { Span } from '../../../lib/traces/span.js';
import type { BrokerDeps } from '../deps.js';
import { decodedRecords } from '../records/encoded-records.js';
import * as schemas from '../schemas.js';
import { accessOf, brokerRoute } from './broker-route.js';

const errors = [400, 401, 403, 404, 413, 429, 503, 504] as const;

export const produceRoutes: readonly Route<BrokerDeps>[] = [
  brokerRoute({
    operationId: 'broker.produce',
    isKeyed: true,
    summary: 'Writes one record or several, each to the topic that it names.',
    methods: ['GET', 'POST'],
    changesData: true,
    path: '/produce',
    request: { headers: schemas.encodingHeader, body: schemas.recordsWithTopicBody },
    reply: schemas.metadataListReply,
    errors,
    handle: async ({ headers, body }, context, deps) => {
      const records = await decoded(body, headers['broker-encoding']);
      return listText(await produce(records, context, deps));
    },
  }),
  brokerRoute({
    operationId: 'broker.produceToTopic',
    isKeyed: true,
    summary: 'Writes one record or several to a topic.',
    methods: ['GET', 'POST'],
    changesData: true,
    path: '/produce/:topic',
    request: { params: schemas.topicParams, headers: schemas.encodingHeader, body: schemas.recordsBody },
    reply: schemas.metadataListReply,
    errors,
    handle: async ({ params: { topic }, headers, body }, context, deps) => {
      const named = body.map((record) => Object.assign(record, { topic }));
      const records = await decoded(named, headers['broker-encoding']);
      return listText(await produce(records, context, deps));
    },
  }),
  brokerRoute({
    operationId: 'broker.produceFromPath',
    isKeyed: true,
    summary: 'Writes the text in the path as one record.',
    methods: ['GET'],
    changesData: true,
    path: '/produce/:topic/:message',
    request: { params: schemas.messageParams, query: schemas.keyQuery, headers: schemas.encodingHeader },
    reply: schemas.metadataReply,
    errors,
    handle: async ({ params: { topic, message }, query: { key }, headers }, context, deps) => {
      const records = await decoded([{ topic, value: message, key }], headers['broker-encoding']);
      const [written] = await produce(records, context, deps);
      if (written === undefined) throw new Error('one record has one result');
      return written;
    },
  }),
];

function decoded(
  records: readonly schemas.RecordInput[],
  isBase64: boolean | undefined,
): readonly schemas.RecordInput[] | Promise<readonly schemas.RecordInput[]> {
  return isBase64 === true ? inSlices(decodedRecords(records)) : records;
}

/** In slices: 100,000 records take 0.1 s. */
async function listText(written: readonly schemas.Metadata[]): Promise<JsonText> {
  return new JsonText(await arrayText(written, STEP));
}

/** Records between two places to rest. */
const STEP = 1_000;

/** What every form of produce comes to. */
export async function produce(
  records: readonly schemas.RecordInput[],
  context: RouteContext,
  deps: BrokerDeps,
): Promise<schemas.Metadata[]> {
  const access = accessOf(context, deps);
  access.checkProduce(new Set(records.map(({ topic }) => topic)));
  access.quota?.check();
  access.quota?.spend(records.length, bytesOf(records));
  const { producer, tracer } = deps;
  return tracer === undefined
    ? producer.produce(records, context)
    : tracer.within('kafka produce', { ...KAFKA, 'messaging.batch.message_count': records.length }, () =>
        producer.produce(withTrace(records, tracer.current.getStore()), context),
      );
}

function bytesOf(records: readonly schemas.RecordInput[]): number {
  let bytes = 0;
  for (const { key, value } of records) bytes += (value?.length ?? 0) + (key?.length ?? 0);
  return bytes;
}

const KAFKA = { 'messaging.system': 'kafka' };

/** Whoever reads them can go on with the trace; one that a record brings stays. */
function withTrace(
  records: readonly schemas.RecordInput[],
  span: Span | undefined,
): readonly schemas.RecordInput[] {
  if (span === undefined) return records;
  const added = { key: 'traceparent', value: span.traceparent };
  return records.map((record) => {
    const headers = record.headers ?? [];
    return headers.some(({ key }) => key === 'traceparent')
      ? record
      : { ...record, headers: [...headers, added] };
  });
}
