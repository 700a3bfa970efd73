import type { RawRoute } from '../../http/route.js';
import { handleCommand, handlePath, handlePipeline, handleTransaction, type KvDeps } from './handlers.js';
import { documents } from './schemas.js';

const STATUSES = [400, 405, 413, 429, 502];

export const kvRoutes: readonly RawRoute<KvDeps>[] = [
  {
    kind: 'raw',
    operationId: 'kv.pipeline',
    summary: 'Several commands in order, each with a result or an error of its own.',
    methods: ['POST'],
    path: '/pipeline',
    request: { body: documents.commands },
    reply: documents.replies,
    errors: STATUSES,
    handle: handlePipeline,
  },
  {
    kind: 'raw',
    operationId: 'kv.transaction',
    summary: 'Several commands as one atomic transaction.',
    methods: ['POST'],
    path: '/multi-exec',
    request: { body: documents.commands },
    reply: documents.replies,
    errors: STATUSES,
    handle: handleTransaction,
  },
  {
    kind: 'raw',
    operationId: 'kv.command',
    summary: 'One command as a JSON array.',
    methods: ['POST'],
    path: '/',
    request: { body: documents.command },
    reply: documents.reply,
    errors: STATUSES,
    handle: handleCommand,
  },
  {
    kind: 'raw',
    prefix: true,
    operationId: 'kv.path',
    summary: 'One command in the path; a body becomes its last argument, query parameters follow it.',
    methods: ['GET', 'HEAD', 'POST', 'PUT'],
    path: '/',
    documentedPath: '/:command/:arguments',
    request: { body: documents.value },
    reply: documents.reply,
    errors: STATUSES,
    handle: handlePath,
  },
];
