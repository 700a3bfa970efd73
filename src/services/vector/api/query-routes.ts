import { type JsonText, Reply } from '../../../http/route.js';
import { arrayOf } from '../../../lib/json/joined-texts.js';
import { parseWithVectors } from '../records/lift-vectors.js';
import {
  endBody,
  queryBody,
  queryDataBody,
  resumableBody,
  resumableDataBody,
  resumeBody,
} from '../schemas/queries.js';
import { entriesReply, queryReply, resumableReply, successReply } from '../schemas/replies.js';
import type { Tolerated } from '../schemas/tolerant.js';
import type { Found, Hit } from '../search/searcher.js';
import type { VectorIndex } from '../vector-index.js';
import { bothRoutes, indexRoute, resultText, successAfter, warned } from './index-route.js';

/** How the queries were answered, where one of them asks for that. */
function answerOf(
  found: readonly Found[],
  queries: readonly (Tolerated & { readonly explain: boolean })[],
): JsonText | Reply {
  const text = listsText(found.map(({ hits }) => hits));
  if (!queries.some(({ explain, ignored }) => explain || ignored !== undefined)) return text;
  const plan = { 'Vector-Plan': found.map((each) => each.plan).join(', ') };
  return warned(queries.some(({ explain }) => explain) ? new Reply(200, text, plan) : text, ...queries);
}

/** A single query is answered by a flat list also when it stands in an array. */
function listsText(lists: readonly (readonly Hit[])[]): JsonText {
  const [first] = lists;
  if (lists.length === 1 && first !== undefined) return resultText(hitsText(first));
  const all = lists.flatMap((list, i) => (i === 0 ? hitsText(list) : [',', ...hitsText(list)]));
  return resultText(['[', ...all, ']']);
}

const hitsText = (hits: readonly Hit[]): string[] => arrayOf(hits.map(({ text }) => text));

async function begin(
  index: VectorIndex,
  start: Parameters<VectorIndex['resumable']['start']>,
): Promise<JsonText> {
  const { uuid, hits } = await index.resumable.start(...start);
  return resultText([`{"uuid":"${uuid}","scores":`, ...hitsText(hits), '}']);
}

const query = bothRoutes({
  operationId: 'vector.query',
  summary: 'The records nearest to a vector, best score first; or several such lists.',
  path: '/query',
  request: { body: queryBody },
  reply: queryReply,
  parseBody: parseWithVectors,
  handle: async (index, { namespace, body }, { signal }) =>
    answerOf(await index.query(namespace, body, signal), body),
});

const queryData = bothRoutes({
  operationId: 'vector.queryData',
  summary: 'The records nearest to a text, by the vectors that the embedder makes of it.',
  path: '/query-data',
  request: { body: queryDataBody },
  reply: queryReply,
  handle: async (index, { namespace, body }, { signal }) =>
    answerOf(await index.query(namespace, await index.embedQueries(body, signal), signal), body),
});

const resumableQuery = bothRoutes({
  operationId: 'vector.resumableQuery',
  summary: 'Begins a query that can be continued.',
  path: '/resumable-query',
  errors: [429],
  request: { body: resumableBody },
  reply: resumableReply,
  handle: async (index, { namespace, body: { maxIdle, ignored, ...query } }, { signal }) =>
    warned(await begin(index, [namespace, query, maxIdle, signal]), { ignored }),
});

const resumableQueryData = bothRoutes({
  operationId: 'vector.resumableQueryData',
  summary: 'Begins a query by text that can be continued.',
  path: '/resumable-query-data',
  errors: [429],
  request: { body: resumableDataBody },
  reply: resumableReply,
  handle: async (index, { namespace, body: { maxIdle, ignored, ...query } }, { signal }) => {
    const [embedded] = await index.embedQueries([query], signal);
    const start = [namespace, embedded as NonNullable<typeof embedded>, maxIdle, signal] as const;
    return warned(await begin(index, [...start]), { ignored });
  },
});

const resume = indexRoute({
  operationId: 'vector.resumableQueryNext',
  summary: 'Further records of a resumable query, none of which was there before.',
  path: '/resumable-query-next',
  errors: [404],
  request: { body: resumeBody },
  reply: entriesReply,
  handle: async (index, { body }, { signal }) =>
    resultText(hitsText(await index.resumable.next(body.uuid, body.additionalK, signal))),
});

const end = indexRoute({
  operationId: 'vector.resumableQueryEnd',
  summary: 'Ends a resumable query.',
  path: '/resumable-query-end',
  errors: [404],
  request: { body: endBody },
  reply: successReply,
  handle: (index, { body }, { signal }) => successAfter(index.resumable.end(body.uuid, signal)),
});

export const queryRoutes = [...query, ...queryData, ...resumableQuery, ...resumableQueryData, resume, end];
