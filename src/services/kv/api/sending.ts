import { contractHeaderReader } from '../../../http/headers.js';
import type { Principal, RawReply, RawRequest, RouteContext } from '../../../http/route.js';
import { AclPrincipal } from '../auth/rest-tokens.js';
import { headerAlias } from '../card.js';
import type { Row } from '../commands/commands.js';
import { tracedRows } from '../database/traced-rows.js';
import type { KvDeps } from '../deps.js';
import type { Freshness } from '../replicas/sync-token.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Answer } from './answer-format.js';

const syncTokenHeader = contractHeaderReader(headerAlias, 'sync-token');

type FinishReply = (replies: RespValue[], freshness?: Freshness) => RawReply | Promise<RawReply>;

/** Sends rows that are answered by one reply each: to the primary, or to a replica where there are some. */
export function send(
  rows: readonly Row[],
  request: RawRequest,
  context: RouteContext,
  deps: KvDeps,
  finish: FinishReply,
): Promise<RawReply> {
  // most requests are not, and have no use for a closure
  const { admission } = deps.client;
  if (!admission.isWeighty(rows, context.principal)) return sendNow(rows, request, context, deps, finish);
  return admission.inTurn(rows, context, () => sendNow(rows, request, context, deps, finish));
}

function sendNow(
  rows: readonly Row[],
  { headers }: RawRequest,
  { principal }: RouteContext,
  { client, replicas }: KvDeps,
  finish: FinishReply,
): Promise<RawReply> {
  if (replicas === undefined || principal instanceof AclPrincipal)
    return client.run(principal, rows, finish) as Promise<RawReply>;
  const run = () => replicas.run(rows, syncTokenHeader(headers), finish) as Promise<RawReply>;
  const { tracer } = client.options;
  return tracer === undefined ? run() : tracedRows(tracer, rows, run);
}

/** A large body is read in slices, between which others have their turn: what that takes is not time that Redis owes. */
export function beginDeadline(context: RouteContext, { client }: KvDeps): void {
  context.limitTo(client.options.timeoutMs);
}

export function countReplies(rows: readonly (Row | RespError)[], replies: readonly RespValue[]): void {
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    if (row === undefined || row instanceof RespError) continue;
    if (replies[i] instanceof RespError) row.rule.counter.error += 1;
    else row.rule.counter.ok += 1;
  }
}

/** A large answer is written in slices. */
export function replied(
  answer: Answer | Promise<Answer>,
  rows: readonly (Row | RespError)[],
  { principal }: RouteContext,
  deps: KvDeps,
  freshness?: Freshness,
): RawReply | Promise<RawReply> {
  if (!(answer instanceof Promise)) return reply(answer, rows, principal, deps, freshness);
  return answer.then((whole) => reply(whole, rows, principal, deps, freshness));
}

/** Shorter ones (characters or bytes) are always sent. */
const MATTERS = 1_024;

/** Clients keep the sync token of the newest 2xx reply under the name that they know. */
function reply(
  answer: Answer,
  rows: readonly (Row | RespError)[],
  principal: Principal,
  { client, nextSyncToken }: KvDeps,
  freshness?: Freshness,
): RawReply {
  client.admission.sawReply(rows, principal, answer.body.length);
  if (answer.status !== 200) return answer;
  const headers = { 'Upstash-Sync-Token': nextSyncToken(freshness) };
  // it matters for large replies only, and a pipeline is long
  const hasChangedData = answer.body.length > MATTERS && rows.some(changes);
  return { ...answer, headers, hasChangedData };
}

function changes(row: Row | RespError): boolean {
  return !(row instanceof RespError) && !row.rule.reads;
}
