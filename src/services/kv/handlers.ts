import { HttpError } from '../../http/errors.js';
import { contractHeader } from '../../http/headers.js';
import type { RawReply, RawRequest, RawRoute, RouteContext } from '../../http/route.js';
import { type Answer, formatOf, listAnswer, singleAnswer } from './answer-format.js';
import { answerRows, answerTransaction } from './answer-rows.js';
import type { Row } from './commands.js';
import type { DailyQuota } from './daily-quota.js';
import type { KvDeps } from './deps.js';
import { commandOfJson, commandsOfJson } from './json-arguments.js';
import { isPassing, isPassingForScript } from './passing.js';
import { commandOfPath } from './path-arguments.js';
import { isSpecial } from './prepared-row.js';
import { type RequestLimits, tooLargeCommand, tooLongPipeline, tooManyElements } from './request-limits.js';
import { RespError, type RespValue } from './resp-decoder.js';
import type { Command } from './resp-encoder.js';
import { AclPrincipal } from './rest-tokens.js';
import { handleMonitor, handlePsubscribe, handleSubscribe } from './stream-handlers.js';
import type { Freshness } from './sync-token.js';
import { transactionResults } from './transaction.js';

type Handle = RawRoute<KvDeps>['handle'];

/** POST: the body is the command. */
export const handleCommand: Handle = (request, context, deps) => {
  refuseTooMany(request.body, deps.limits);
  return runCommand(commandOfJson(request.body), request, context, deps);
};

/** The command is in the path; POST and PUT append their body to it. */
export const handlePath: Handle = (request, context, deps) => {
  if (request.target.startsWith('//')) {
    const endpoint = doubledSlash(request);
    if (endpoint !== undefined) return endpoint(request, context, deps);
  }
  if (request.body.length > 0 && request.method === 'GET')
    throw new HttpError('invalid_request', 'ERR a body needs the method POST or PUT');
  return runCommand(commandOfPath(request.target, request.body), request, context, deps);
};

const STREAMS: ReadonlyMap<string, Handle> = new Map([
  ['subscribe', handleSubscribe],
  ['psubscribe', handlePsubscribe],
  ['monitor', handleMonitor],
]);

/** Clients that join a base URL which ends in a slash ask for `//pipeline`. */
function doubledSlash({ target, method }: RawRequest): Handle | undefined {
  const [, name = '', rest = ''] = /^\/\/([a-z-]*)(.*)$/s.exec(target) ?? [];
  const stream = STREAMS.get(name);
  if (stream !== undefined && method !== 'PUT' && /^([/?]|$)/.test(rest))
    return (request, context, deps) => stream({ ...request, target: rest }, context, deps);
  if (method !== 'POST' || !/^\/?(\?|$)/.test(rest)) return undefined;
  if (name === '') return handleCommand;
  if (name === 'pipeline') return handlePipeline;
  return name === 'multi-exec' ? handleTransaction : undefined;
}

function runCommand(
  command: Command,
  request: RawRequest,
  context: RouteContext,
  deps: KvDeps,
): Promise<RawReply> {
  const { client, quota, limits, nextSyncToken } = deps;
  const format = formatOf(request);
  const tooLarge = tooLargeCommand(command, limits);
  if (tooLarge !== undefined) throw new HttpError('payload_too_large', tooLarge);
  const row = client.rules.admit(command, context.principal.access);
  if (typeof row === 'string') throw new HttpError('invalid_request', row);
  if (!quota.grantAll(1)) throw quota.exceeded();
  const finish = (replies: RespValue[], freshness?: Freshness) => {
    tally([row], replies);
    const answer = singleAnswer(
      replies[0],
      format,
      row.rule.lane === 'scripts' ? isPassingForScript : isPassing,
    );
    return reply(answer, [row], nextSyncToken, freshness);
  };
  if (!isSpecial(row, client.options.emulations)) return send([row], request, context, deps, finish);
  return answerRows([row], client, context).then(finish);
}

/** Rows that are refused get their error in place; the others run, in order and in one write. */
export const handlePipeline: Handle = (request, context, deps) => {
  const { client, quota, limits, nextSyncToken } = deps;
  const format = formatOf(request);
  refuseTooMany(request.body, limits);
  const commands = commandsOfJson(request.body);
  refuseTooLong(commands, limits);
  const { access } = context.principal;
  const { emulations } = client.options;
  let plain = true;
  const rows = commands.map((command) => {
    const refusal = tooLargeCommand(command, limits);
    const row = refusal === undefined ? client.rules.admit(command, access) : `ERR ${refusal}`;
    if (typeof row !== 'string' && !isSpecial(row, emulations)) return row;
    plain = false;
    return typeof row === 'string' ? new RespError(row) : row;
  });
  if (!limitToQuota(rows, quota)) plain = false;
  const finish = (replies: RespValue[], freshness?: Freshness) => {
    tally(rows, replies);
    return reply(listAnswer(replies, format), rows, nextSyncToken, freshness);
  };
  if (plain) return send(rows as Row[], request, context, deps, finish);
  return answerRows(rows, client, context).then(finish);
};

/** All rows are checked before the first byte is sent: one refused row discards the whole. */
export const handleTransaction: Handle = (request, context, deps) => {
  const { client, quota, limits, nextSyncToken, replicas } = deps;
  const format = formatOf(request);
  refuseTooMany(request.body, limits);
  const commands = commandsOfJson(request.body);
  refuseTooLong(commands, limits);
  const rows = commands.map((command) => {
    const tooLarge = tooLargeCommand(command, limits);
    if (tooLarge !== undefined) throw new HttpError('payload_too_large', tooLarge);
    const row = client.rules.admit(command, context.principal.access);
    if (typeof row === 'string') throw new HttpError('invalid_request', row);
    return row;
  });
  if (!quota.grantAll(rows.length)) throw quota.exceeded();
  const finish = (results: RespValue[] | RespError, freshness?: Freshness) => {
    const jsonFormat = format === 'resp2' ? 'utf8' : format;
    if (results instanceof RespError) return singleAnswer(results, jsonFormat);
    tally(rows, results);
    return reply(listAnswer(results, jsonFormat), rows, nextSyncToken, freshness);
  };
  if (!rows.some((row) => isSpecial(row, client.options.emulations))) {
    const land = (replies: RespValue[], freshness?: Freshness) =>
      finish(transactionResults(replies), freshness);
    if (replicas === undefined || context.principal instanceof AclPrincipal)
      return client.transaction(context, rows, land);
    return replicas.transaction(rows, land);
  }
  return answerTransaction(rows, client, context, transactionResults).then(finish);
};

/** Sends rows that are answered by one reply each: to the primary, or to a replica where there are some. */
function send(
  rows: readonly Row[],
  { headers }: RawRequest,
  { principal }: RouteContext,
  { client, replicas }: KvDeps,
  finish: (replies: RespValue[], freshness?: Freshness) => RawReply,
): Promise<RawReply> {
  if (replicas === undefined || principal instanceof AclPrincipal) return client.run(principal, rows, finish);
  return replicas.run(rows, contractHeader(headers, 'service-sync-token'), finish);
}

/** Rows beyond the daily limit become errors. @returns whether there are none */
function limitToQuota(rows: (Row | RespError)[], quota: DailyQuota): boolean {
  if (quota.isUnlimited) return true;
  const wanted = rows.filter((row) => !(row instanceof RespError)).length;
  let granted = quota.grant(wanted);
  if (granted === wanted) return true;
  const refusal = new RespError(quota.refusal);
  for (const [i, row] of rows.entries()) {
    if (!(row instanceof RespError) && granted-- <= 0) rows[i] = refusal;
  }
  return false;
}

function refuseTooMany(body: Buffer, limits: RequestLimits): void {
  const refusal = tooManyElements(body, limits);
  if (refusal !== undefined) throw new HttpError('invalid_request', refusal);
}

function refuseTooLong(commands: readonly Command[], limits: RequestLimits): void {
  const refusal = tooLongPipeline(commands.length, limits);
  if (refusal !== undefined) throw new HttpError('invalid_request', refusal);
}

function tally(rows: readonly (Row | RespError)[], replies: readonly RespValue[]): void {
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    if (row === undefined || row instanceof RespError) continue;
    if (replies[i] instanceof RespError) row.rule.tally.error += 1;
    else row.rule.tally.ok += 1;
  }
}

/** Shorter ones (characters or bytes) are always sent. */
const MATTERS = 1_024;

/** Clients keep the sync token of the newest 2xx reply under the name that they know. */
function reply(
  answer: Answer,
  rows: readonly (Row | RespError)[],
  nextSyncToken: KvDeps['nextSyncToken'],
  freshness?: Freshness,
): RawReply {
  if (answer.status !== 200) return answer;
  const headers = { 'Upstash-Sync-Token': nextSyncToken(freshness) };
  // it matters for large replies only, and a pipeline is long
  const hasChangedData = answer.body.length > MATTERS && rows.some(changes);
  return { ...answer, headers, hasChangedData };
}

function changes(row: Row | RespError): boolean {
  return !(row instanceof RespError) && !row.rule.reads;
}
