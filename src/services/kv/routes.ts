import { HttpError } from '../../http/errors.js';
import { contractHeader } from '../../http/headers.js';
import type { RawReply, RawRequest, RawRoute, RouteContext } from '../../http/route.js';
import type { KvClient } from './client.js';
import { commandOfJson, commandsOfJson } from './json-arguments.js';
import { commandOfPath } from './path-arguments.js';
import { type Encoding, errorJson, replyJson } from './reply.js';
import { RespError, type RespValue } from './resp-decoder.js';
import { type Command, encodeCommand, encodeCommands } from './resp-encoder.js';
import { documents } from './schemas.js';
import { TRANSACTION_FRAME, transactionPayload, transactionReply } from './transaction.js';

export interface KvDeps {
  readonly client: KvClient;
  readonly nextSyncToken: () => string;
}

type KvRoute = RawRoute<KvDeps>;
type Handle = KvRoute['handle'];
type Outcome = Pick<RawReply, 'status' | 'body'>;

const STATUSES = [400, 405, 502];

/** POST: the body is the command. */
const handleCommand: Handle = (request, context, deps) =>
  runCommand(commandOfJson(request.body), request, context, deps);

/** Clients that join a base URL which ends in a slash ask for `//pipeline`. */
function doubledSlash(target: string): Handle | undefined {
  const match = /^\/\/(pipeline|multi-exec)?\/?(?:\?|$)/.exec(target);
  if (match === null) return undefined;
  if (match[1] === undefined) return handleCommand;
  return match[1] === 'pipeline' ? handlePipeline : handleTransaction;
}

/** The command is in the path; POST and PUT append their body to it. */
const handlePath: Handle = (request, context, deps) => {
  if (request.target.startsWith('//') && request.method === 'POST') {
    const endpoint = doubledSlash(request.target);
    if (endpoint !== undefined) return endpoint(request, context, deps);
  }
  if (request.body.length > 0 && request.method === 'GET')
    throw new HttpError('invalid_request', 'ERR a body needs the method POST or PUT');
  return runCommand(commandOfPath(request.target, request.body), request, context, deps);
};

/** Rows that are refused get their error in place; the others run, in order and in one write. */
const handlePipeline: Handle = (request, context, { client, nextSyncToken }) => {
  const rows = commandsOfJson(request.body);
  const encoding = encodingOf(request);
  const refusals = rows.map((row) => client.rules.refusal(row, context.principal.access));
  const accepted = rows.filter((_, i) => refusals[i] === undefined);
  const finish = (replies: RespValue[]) => {
    let next = 0;
    const entries = refusals.map((refusal) =>
      refusal === undefined ? replyJson(replies[next++], encoding) : errorJson(refusal),
    );
    return reply({ status: 200, body: `[${entries.join(',')}]` }, nextSyncToken);
  };
  if (accepted.length === 0) return Promise.resolve(finish([]));
  return client.run(encodeCommands(accepted), accepted.length, finish);
};

/** All rows are checked before the first byte is sent: one refused row discards the whole. */
const handleTransaction: Handle = (request, context, { client, nextSyncToken }) => {
  const rows = commandsOfJson(request.body);
  const encoding = encodingOf(request);
  for (const row of rows) refuseUnlessAllowed(row, context, client);
  return client.run(transactionPayload(rows), rows.length + TRANSACTION_FRAME, (replies) =>
    reply(transactionReply(replies, encoding), nextSyncToken),
  );
};

function runCommand(
  command: Command,
  request: RawRequest,
  context: RouteContext,
  { client, nextSyncToken }: KvDeps,
): Promise<RawReply> {
  const encoding = encodingOf(request);
  refuseUnlessAllowed(command, context, client);
  return client.run(encodeCommand(command), 1, (replies) => {
    const status = replies[0] instanceof RespError ? 400 : 200;
    return reply({ status, body: replyJson(replies[0], encoding) }, nextSyncToken);
  });
}

function refuseUnlessAllowed(command: Command, context: RouteContext, client: KvClient): void {
  const refusal = client.rules.refusal(command, context.principal.access);
  if (refusal !== undefined) throw new HttpError('invalid_request', refusal);
}

function encodingOf({ headers }: RawRequest): Encoding {
  const wanted = contractHeader(headers, 'service-encoding');
  return wanted !== undefined && wanted.toLowerCase() === 'base64' ? 'base64' : 'utf8';
}

/** Clients keep the sync token of the newest 2xx reply under the name that they know. */
function reply({ status, body }: Outcome, nextSyncToken: () => string): RawReply {
  return status === 200
    ? { status, body, headers: { 'Upstash-Sync-Token': nextSyncToken() } }
    : { status, body };
}

export const kvRoutes: readonly KvRoute[] = [
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
