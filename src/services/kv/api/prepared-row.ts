import { BLOCKING_READS, blockingOf } from '../commands/block-option.js';
import type { Row } from '../commands/commands.js';
import { type FollowUp, isFollowUp, unchanged } from '../emulations/emulation.js';
import type { Emulations } from '../emulations/emulations.js';
import { AclTokens } from '../redis/acl-tokens.js';
import type { RespValue } from '../resp/resp-decoder.js';

/** A row as it is sent, and what becomes of its reply. */
export interface PreparedRow {
  readonly row: Row;
  /** How long Redis may wait on it, in ms; `undefined` for one that answers at once. */
  readonly blockMs: number | undefined;
  readonly finish: (reply: RespValue) => RespValue | FollowUp;
}

/** Further commands that the emulations of one request may need: a page of SCAN WITHTYPE takes up to 10,000. */
const MOST_FURTHER = 20_000;

/** Whether a row is more than a command that is sent as it is and answered by its reply. */
export function isSpecial(row: Row, emulations: Emulations): boolean {
  const { rule, command } = row;
  if (rule.plain) return false;
  if (AclTokens.answers(row)) return true;
  if (BLOCKING_READS.has(rule.name) && blockingOf(command, 1) !== undefined) return true;
  return emulations.emulationOf(rule.name, command) !== undefined;
}

/**
 * Bounds the wait of a row and puts what emulates it in its place.
 * @param longestBlockMs what remains of the time that a request may wait in Redis
 */
export function prepareRow(row: Row, emulations: Emulations, longestBlockMs: number): PreparedRow {
  const { rule, command } = row;
  if (rule.plain) return { row, blockMs: undefined, finish: unchanged };
  const blocking = BLOCKING_READS.has(rule.name) ? blockingOf(command, longestBlockMs) : undefined;
  if (blocking !== undefined)
    return { row: { command: blocking.command, rule }, blockMs: blocking.ms, finish: unchanged };
  const emulation = emulations.emulationOf(rule.name, command);
  if (emulation === undefined) return { row, blockMs: undefined, finish: unchanged };
  return { row: { command: emulation.command, rule }, blockMs: undefined, finish: emulation.finish };
}

/**
 * The answers to prepared rows from their replies.
 * @param send runs the further commands that some answers need, all in one go
 */
export async function finishRows(
  rows: readonly PreparedRow[],
  replies: readonly RespValue[],
  send: (followUps: readonly FollowUp[]) => Promise<RespValue[][]>,
): Promise<RespValue[]> {
  let further = 0;
  const answers = rows.map(({ finish }, i) => {
    const answer = finish(replies[i]);
    if (isFollowUp(answer)) further += answer.commands.length;
    return isFollowUp(answer) && further > MOST_FURTHER ? answer.otherwise : answer;
  });
  const followUps = answers.filter(isFollowUp);
  if (followUps.length === 0) return answers as RespValue[];
  const furtherReplies = await send(followUps);
  let next = 0;
  return answers.map((answer) =>
    isFollowUp(answer) ? answer.finish(furtherReplies[next++] as RespValue[]) : answer,
  );
}
