import { HttpError } from '../../../http/errors.js';
import type { RouteContext } from '../../../http/route.js';
import type { Row } from '../commands/commands.js';
import type { KvClient } from '../database/client.js';
import type { FollowUp } from '../emulations/emulation.js';
import { AclTokens } from '../redis/acl-tokens.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import { finishRows, type PreparedRow, prepareRow } from './prepared-row.js';

/** Tokens of ACL users that one request may ask for: each takes a login. */
const MOST_TOKENS = 20;

/**
 * Answers rows of which some are special: refused (already an error), emulated, waiting, or answered by Portico itself.
 * All that are sent go out in one write, in order; Portico's own answers come after them.
 * @returns one value each, in order
 * @throws HttpError as `KvClient.run`
 */
export async function answerRows(
  rows: readonly (Row | RespError)[],
  client: KvClient,
  context: RouteContext,
): Promise<RespValue[]> {
  const answers: RespValue[] = rows.map((row) => (row instanceof RespError ? row : null));
  const own: number[] = [];
  const sent: number[] = [];
  const prepared: PreparedRow[] = [];
  let blockLeftMs = client.options.longestBlockMs;
  for (const [i, row] of rows.entries()) {
    if (row instanceof RespError) continue;
    if (AclTokens.answers(row)) {
      own.push(i);
      continue;
    }
    const ready = prepareRow(row, client.options.emulations, Math.max(1, blockLeftMs));
    blockLeftMs -= ready.blockMs ?? 0;
    sent.push(i);
    prepared.push(ready);
  }
  const replies = await sendPrepared(prepared, client, context);
  const values = await finishRows(prepared, replies, (all) => sendFollowUps(all, client, context));
  for (const [k, value] of values.entries()) answers[sent[k] as number] = value;
  await answerOwn(own, rows, answers, client, context);
  return answers;
}

/** Tokens, one after the other: each may need a login of its own. Who may not look at users gets none. */
async function answerOwn(
  own: readonly number[],
  rows: readonly (Row | RespError)[],
  answers: RespValue[],
  client: KvClient,
  context: RouteContext,
): Promise<void> {
  if (own.length === 0) return;
  const refusal = await client.run(context.principal, [client.rules.own(['ACL', 'USERS'])], ([reply]) =>
    reply instanceof RespError ? reply : undefined,
  );
  for (const [k, i] of own.entries()) {
    if (context.signal.aborted) throw new HttpError('client_gone');
    if (refusal !== undefined) answers[i] = refusal;
    else if (k >= MOST_TOKENS)
      answers[i] = new RespError(`ERR more than ${MOST_TOKENS} tokens in one request`);
    else answers[i] = await client.aclTokens.answer(rows[i] as Row);
  }
}

/**
 * Answers rows as one transaction, some of which are emulated.
 * @param finish makes the rows' results, or the error of a transaction that was discarded, of the raw replies
 */
export async function answerTransaction(
  rows: readonly Row[],
  client: KvClient,
  context: RouteContext,
  finish: (replies: readonly RespValue[]) => RespValue[] | RespError,
): Promise<RespValue[] | RespError> {
  const prepared = rows.map((row) => prepareRow(row, client.options.emulations, 1));
  const unfit = prepared.findIndex(({ row, blockMs }) => blockMs !== undefined || AclTokens.answers(row));
  if (unfit >= 0) {
    const name = rows[unfit]?.rule.name;
    throw new HttpError(
      'invalid_request',
      `ERR Command '${name}' is not available like this in a transaction`,
    );
  }
  const sent = prepared.map(({ row }) => row);
  const results = await client.admission.use(sent, context, () => client.transaction(context, sent, finish));
  if (results instanceof RespError) return results;
  return finishRows(prepared, results, (all) => sendFollowUps(all, client, context));
}

async function sendPrepared(
  prepared: readonly PreparedRow[],
  client: KvClient,
  context: RouteContext,
): Promise<RespValue[]> {
  if (prepared.length === 0) return [];
  const rows = prepared.map(({ row }) => row);
  const waits = prepared.filter(({ blockMs }) => blockMs !== undefined);
  const blockMs = waits.reduce((sum, row) => sum + (row.blockMs ?? 0), 0);
  if (waits.length > 0) return client.wait(context, rows, blockMs, (replies) => replies);
  return client.admission.use(rows, context, () => client.run(context.principal, rows, (replies) => replies));
}

async function sendFollowUps(
  followUps: readonly FollowUp[],
  client: KvClient,
  { principal }: RouteContext,
): Promise<RespValue[][]> {
  const commands = followUps.flatMap((followUp) => followUp.commands);
  const rows = commands.map((command) => client.rules.own(command));
  const replies = rows.length === 0 ? [] : await client.run(principal, rows, (all) => all);
  let end = 0;
  return followUps.map(({ commands: own }) => {
    end += own.length;
    return replies.slice(end - own.length, end);
  });
}
