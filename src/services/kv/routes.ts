import type { RawRoute } from '../../http/route.js';
import { handlePipeline, handleTransaction } from './api/batch-handlers.js';
import { handleCommand, handlePath } from './api/handlers.js';
import { handleMonitor, handlePsubscribe, handleSubscribe } from './api/stream-handlers.js';
import type { KvDeps } from './deps.js';
import { documents } from './schemas.js';

const STATUSES = [400, 405, 413, 429, 502];

/** Before the prefix that takes every path as a command. */
const STREAMS: readonly RawRoute<KvDeps>[] = [
  {
    kind: 'raw',
    prefix: true,
    operationId: 'kv.subscribe',
    summary: 'Messages of channels as server-sent events; several channels are separated by slashes.',
    methods: ['GET', 'POST'],
    path: '/subscribe',
    documentedPath: '/subscribe/:channel',
    reply: documents.events,
    replyType: 'text/event-stream',
    errors: [400, 405, 429],
    handle: handleSubscribe,
  },
  {
    kind: 'raw',
    prefix: true,
    operationId: 'kv.psubscribe',
    summary: 'Messages of channels that match patterns as server-sent events.',
    methods: ['GET', 'POST'],
    path: '/psubscribe',
    documentedPath: '/psubscribe/:pattern',
    reply: documents.events,
    replyType: 'text/event-stream',
    errors: [400, 405, 429],
    handle: handlePsubscribe,
  },
  {
    kind: 'raw',
    operationId: 'kv.monitor',
    summary: 'Every command that Redis runs as server-sent events; for the Standard token.',
    methods: ['GET', 'POST'],
    path: '/monitor',
    reply: documents.events,
    replyType: 'text/event-stream',
    errors: [400, 405, 429],
    handle: handleMonitor,
  },
];

export const routes: readonly RawRoute<KvDeps>[] = [
  {
    kind: 'raw',
    operationId: 'kv.pipeline',
    isKeyed: true,
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
    isKeyed: true,
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
    isKeyed: true,
    summary: 'One command as a JSON array.',
    methods: ['POST'],
    path: '/',
    request: { body: documents.command },
    reply: documents.reply,
    errors: STATUSES,
    handle: handleCommand,
  },
  ...STREAMS,
  {
    kind: 'raw',
    prefix: true,
    operationId: 'kv.path',
    isKeyed: true,
    summary: 'One command in the path; a body becomes its last argument, query parameters follow it.',
    methods: ['GET', 'HEAD', 'POST', 'PUT'],
    path: '/',
    documentedPath: '/:command/:arguments',
    documentedMethod: 'GET',
    request: { body: documents.value },
    reply: documents.reply,
    errors: STATUSES,
    handle: handlePath,
  },
];
