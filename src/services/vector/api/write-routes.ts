import { parseJson, parseJsonBody } from '../../../http/body.js';
import { HttpError } from '../../../http/errors.js';
import { WHOLE_BYTES } from '../../../lib/json/sliced-json.js';
import { importRecords } from '../records/import-records.js';
import { parseWithVectors } from '../records/lift-vectors.js';
import { isNdjson, NDJSON } from '../records/ndjson.js';
import { deleteBody, resetBody, resetQuery } from '../schemas/reads.js';
import { updateBody, upsertBody, upsertDataBody } from '../schemas/records.js';
import { deleteReply, successReply, updateReply } from '../schemas/replies.js';
import { bothRoutes, successAfter } from './index-route.js';

const upsert = bothRoutes({
  operationId: 'vector.upsert',
  summary:
    'Stores one vector or an array of them, or a stream of any length (application/x-ndjson); those that exist are replaced.',
  path: '/upsert',
  writes: true,
  request: { body: upsertBody },
  reply: successReply,
  parseBody: parseWithVectors,
  handle: (index, { namespace, body }, { signal }) =>
    successAfter(index.writer.upsert(namespace, body, signal)),
  besideJson: { body: { contentType: NDJSON, description: 'A record a line, however many.' } },
  flow: {
    takes: (headers) => isNdjson(headers['content-type']),
    handle: (index, { namespace, body }, { signal }) =>
      successAfter(importRecords(index.writer, namespace, body, index.limits, signal)),
  },
});

const upsertData = bothRoutes({
  operationId: 'vector.upsertData',
  summary: 'Stores texts with the vectors that the embedder makes of them.',
  path: '/upsert-data',
  writes: true,
  request: { body: upsertDataBody },
  reply: successReply,
  handle: (index, { namespace, body }, { signal }) =>
    successAfter(index.upsertTexts(namespace, body, signal)),
});

const update = bothRoutes({
  operationId: 'vector.update',
  summary: 'Changes parts of one record, or the metadata of all that a filter or a prefix finds.',
  path: '/update',
  writes: true,
  request: { body: updateBody },
  reply: updateReply,
  handle: async (index, { namespace, body }, { signal }) => ({
    result: { updated: await index.updateAll(namespace, body, signal) },
  }),
});

const remove = bothRoutes({
  operationId: 'vector.delete',
  audit: 'destructive',
  summary: 'Deletes records by id, by the beginning of their id or by their metadata.',
  path: '/delete',
  writes: true,
  request: { body: deleteBody },
  reply: deleteReply,
  parseBody: jsonOrId,
  handle: async (index, { namespace, body }, { signal }) => ({
    result: { deleted: await index.deleter.delete(namespace, body, signal) },
  }),
});

const reset = bothRoutes({
  operationId: 'vector.reset',
  audit: 'destructive',
  summary: 'Deletes every record of a namespace, or of all of them.',
  path: '/reset',
  writes: true,
  request: { query: resetQuery, body: resetBody },
  reply: successReply,
  handle: async (index, { namespace, query }, { signal }) => {
    if (query.all && namespace !== '')
      throw new HttpError('invalid_request', 'A namespace and "all" exclude each other.');
    return successAfter(index.namespaces.reset(query.all ? undefined : namespace, signal));
  },
});

export const writeRoutes = [...upsert, ...upsertData, ...update, ...remove, ...reset];

/** A client in Go deletes one record by sending its bare id. */
function jsonOrId(body: Buffer): unknown {
  try {
    // longer than any id
    return body.length > WHOLE_BYTES ? parseJsonBody(body) : parseJson(body);
  } catch (error) {
    // what was meant as JSON is no id: deleting nothing would hide the mistake
    const text = body.toString('utf8').trim();
    if (text === '' || /^[[{"]/.test(text)) throw error;
    return text;
  }
}
