import { Pieces } from '../../../http/route.js';
import { isNdjson, NDJSON } from '../records/ndjson.js';
import { countBody, facetsBody, fetchBody, infoQuery, rangeBody, rangeHeaders } from '../schemas/reads.js';
import {
  countReply,
  facetsReply,
  fetchReply,
  infoReply,
  randomReply,
  rangeReply,
} from '../schemas/replies.js';
import { bothRoutes, indexRoute, resultText, warned } from './index-route.js';

const fetch = bothRoutes({
  operationId: 'vector.fetch',
  summary:
    'Records by id, in the order asked for with null where there is none, or by the beginning of their id or by their metadata.',
  path: '/fetch',
  request: { body: fetchBody },
  reply: fetchReply,
  handle: async (index, { namespace, body }, { signal }) =>
    warned(resultText(await index.reader.fetch(namespace, body, signal)), body),
});

const range = bothRoutes({
  operationId: 'vector.range',
  summary:
    'A page of records in the order of their insertion, or with Accept: application/x-ndjson all of them, a line each.',
  path: '/range',
  request: { body: rangeBody, headers: rangeHeaders },
  reply: rangeReply,
  besideJson: {
    reply: { contentType: NDJSON, description: 'A record a line, from the cursor on to the end.' },
  },
  handle: async (index, { namespace, body, headers }, { signal }) =>
    isNdjson(headers.accept)
      ? new Pieces(NDJSON, index.reader.lines(namespace, body, signal))
      : warned(resultText(await index.reader.range(namespace, body, signal)), body),
});

const random = bothRoutes({
  operationId: 'vector.random',
  summary: 'One record, each as likely as the others; null when there is none.',
  path: '/random',
  request: {},
  reply: randomReply,
  handle: async (index, { namespace }, { signal }) =>
    resultText(await index.reader.random(namespace, signal)),
});

const count = bothRoutes({
  operationId: 'vector.count',
  summary: 'How many records there are, or how many of them have such an id or such metadata.',
  path: '/count',
  request: { body: countBody },
  reply: countReply,
  handle: async (index, { namespace, body }, { signal }) => ({
    result: { count: await index.reader.count(namespace, body, signal) },
  }),
});

const facets = bothRoutes({
  operationId: 'vector.facets',
  summary: 'The values of a field of the metadata, with how many records have each; the most frequent first.',
  path: '/facets',
  request: { body: facetsBody },
  reply: facetsReply,
  handle: async (index, { namespace, body }, { signal }) =>
    resultText(await index.reader.facets(namespace, body, signal)),
});

const info = indexRoute({
  operationId: 'vector.info',
  summary: 'Counts, size, kind, dimension and similarity function of the index.',
  path: '/info',
  request: { query: infoQuery },
  reply: infoReply,
  handle: async (index, { query }, { signal }) => ({
    result: await index.reader.info(signal, query.explain),
  }),
});

export const readRoutes = [...fetch, ...range, ...random, ...count, ...facets, info];
