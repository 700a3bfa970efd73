import { HttpError } from '../../../http/errors.js';
import type { RawReply, RawRequest, RawRoute, RouteContext } from '../../../http/route.js';
import { WHOLE_BYTES } from '../../../lib/json/sliced-json.js';
import { inSlices, wholly } from '../../../lib/slices.js';
import { AclPrincipal } from '../auth/rest-tokens.js';
import type { Row } from '../commands/commands.js';
import type { KvDeps } from '../deps.js';
import type { Freshness } from '../replicas/sync-token.js';
import { ReplyTooLarge, RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';
import { admit } from './admitted-row.js';
import { type AnswerFormat, formatOf, listAnswer, singleAnswer } from './answer-format.js';
import { answerRows, answerTransaction } from './answer-rows.js';
import type { DailyQuota } from './daily-quota.js';
import { commandsOfJson } from './json-arguments.js';
import { largeCommandsOfJson } from './large-arguments.js';
import { isSpecial } from './prepared-row.js';
import { type RequestLimits, tooLargeCommand, tooLongPipeline } from './request-limits.js';
import { beginDeadline, countReplies, replied, send } from './sending.js';

type Handle = RawRoute<KvDeps>['handle'];

/** Commands between two places to rest. */
const STEP = 100;

/** Rows that are refused get their error in place; the others run, in order and in one write. */
export const handlePipeline: Handle = (request, context, deps) => {
  const format = formatOf(request);
  if (request.body.length > WHOLE_BYTES) return handleLargePipeline(request, context, deps);
  const commands = commandsOfJson(request.body);
  refuseTooLong(commands, deps.limits);
  return runPipeline(wholly(admitted(commands, context, deps)), format, request, context, deps);
};

const handleLargePipeline: Handle = async (request, context, deps) => {
  const commands = await largeCommandsOfJson(request.body, deps.limits);
  refuseTooLong(commands, deps.limits);
  const rows = await inSlices(admitted(commands, context, deps));
  beginDeadline(context, deps);
  return runPipeline(rows, formatOf(request), request, context, deps);
};

interface Admitted {
  readonly rows: (Row | RespError)[];
  /** Each is sent as it is and answered by its reply. */
  readonly plain: boolean;
}

function* admitted(
  commands: readonly Command[],
  context: RouteContext,
  deps: KvDeps,
): Generator<void, Admitted> {
  const { client, limits } = deps;
  const { emulations } = client.options;
  const rows: (Row | RespError)[] = [];
  let plain = true;
  for (let i = 0; i < commands.length; i++) {
    const command = commands[i] as Command;
    const refusal = tooLargeCommand(command, limits);
    const row = refusal === undefined ? admit(command, context, deps) : `ERR ${refusal}`;
    if (typeof row === 'string' || isSpecial(row, emulations)) plain = false;
    rows.push(typeof row === 'string' ? new RespError(row) : row);
    if (i % STEP === STEP - 1) yield;
  }
  return { rows, plain };
}

function runPipeline(
  { rows, plain }: Admitted,
  format: AnswerFormat,
  request: RawRequest,
  context: RouteContext,
  deps: KvDeps,
): Promise<RawReply> {
  const { client, quota } = deps;
  const isPlain = limitToQuota(rows, quota) && plain;
  const finish = (replies: RespValue[], freshness?: Freshness) => {
    countReplies(rows, replies);
    return replied(listAnswer(replies, format), rows, context, deps, freshness);
  };
  if (isPlain) return send(rows as Row[], request, context, deps, finish);
  return answerRows(rows, client, context).then(finish);
}

/** All rows are checked before the first byte is sent: one refused row discards the whole. */
export const handleTransaction: Handle = (request, context, deps) => {
  formatOf(request);
  if (request.body.length > WHOLE_BYTES) return handleLargeTransaction(request, context, deps);
  const commands = commandsOfJson(request.body);
  refuseTooLong(commands, deps.limits);
  return runTransaction(wholly(allAdmitted(commands, context, deps)), request, context, deps);
};

const handleLargeTransaction: Handle = async (request, context, deps) => {
  const commands = await largeCommandsOfJson(request.body, deps.limits);
  refuseTooLong(commands, deps.limits);
  const rows = await inSlices(allAdmitted(commands, context, deps));
  beginDeadline(context, deps);
  return runTransaction(rows, request, context, deps);
};

/** @throws HttpError for the first that is refused */
function* allAdmitted(
  commands: readonly Command[],
  context: RouteContext,
  deps: KvDeps,
): Generator<void, Row[]> {
  const rows: Row[] = [];
  for (let i = 0; i < commands.length; i++) {
    const command = commands[i] as Command;
    const tooLarge = tooLargeCommand(command, deps.limits);
    if (tooLarge !== undefined) throw new HttpError('payload_too_large', tooLarge);
    const row = admit(command, context, deps);
    if (typeof row === 'string') throw new HttpError('invalid_request', row);
    rows.push(row);
    if (i % STEP === STEP - 1) yield;
  }
  return rows;
}

function runTransaction(
  rows: readonly Row[],
  request: RawRequest,
  context: RouteContext,
  deps: KvDeps,
): Promise<RawReply> {
  const { client, quota, replicas } = deps;
  const format = formatOf(request);
  if (!quota.grantAll(rows.length)) throw quota.exceeded();
  const finish = (results: RespValue[] | RespError, freshness?: Freshness) => {
    const jsonFormat = format === 'resp2' ? 'utf8' : format;
    if (results instanceof RespError) return singleAnswer(results, jsonFormat);
    countReplies(rows, results);
    return replied(listAnswer(results, jsonFormat), rows, context, deps, freshness);
  };
  if (!rows.some((row) => isSpecial(row, client.options.emulations))) {
    const land = (replies: RespValue[], freshness?: Freshness) =>
      finish(transactionResults(replies), freshness);
    const isPrimarys = replicas === undefined || context.principal instanceof AclPrincipal;
    return client.admission.use(rows, context, () =>
      isPrimarys ? client.transaction(context, rows, land) : replicas.transaction(rows, land),
    ) as Promise<RawReply>;
  }
  return answerTransaction(rows, client, context, transactionResults).then(finish);
}

/**
 * What became of a transaction.
 * @param replies of MULTI, of each row (`QUEUED` or why it cannot be), of EXEC
 * @returns one result a row, or the error of a transaction that was discarded
 */
export function transactionResults(replies: readonly RespValue[]): RespValue[] | RespError {
  const results = replies.at(-1);
  if (Array.isArray(results)) return results;
  // it was executed: that is told at every row, not by the one error of a transaction that was discarded
  if (results instanceof ReplyTooLarge) return replies.slice(1, -1).map(() => results);
  // EXEC itself only says that there were errors; the first row's is the useful one
  const error = replies.find((reply) => reply instanceof RespError);
  return error instanceof RespError ? error : new RespError('EXECABORT Transaction discarded');
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

function refuseTooLong(commands: readonly Command[], limits: RequestLimits): void {
  const refusal = tooLongPipeline(commands.length, limits);
  if (refusal !== undefined) throw new HttpError('invalid_request', refusal);
}
