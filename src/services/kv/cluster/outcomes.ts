import { HttpError } from '../../../http/errors.js';
import type { Row } from '../commands/commands.js';
import { errorText } from '../errors.js';
import { isPassing } from '../resp/passing.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Join } from './joins.js';

/** The reply to a command, or why there is none. */
export type Outcome = RespValue | HttpError;

/** What became of a row that was several commands, of which these are the outcomes. */
export function outcomeOfJoined(row: Row, join: Join, outcomes: readonly Outcome[]): Outcome {
  const missing = outcomes.filter(isMissing);
  if (missing.length === 0) return join(outcomes as readonly RespValue[]);
  // a read that did not come to its end can be repeated
  if (row.rule.reads || missing.length === outcomes.length) return worst(missing);
  return new HttpError(
    'outcome_unknown',
    'Not every primary of the cluster could run the command: it ran on some of them',
  );
}

/**
 * The replies to all rows, with errors in the place of those that got none.
 * @throws HttpError when none got any, or when the user is not let in
 */
export function repliesOf(outcomes: readonly Outcome[]): RespValue[] {
  const errors = outcomes.filter((outcome) => outcome instanceof HttpError);
  if (errors.length === 0) return outcomes as RespValue[];
  const unauthorized = errors.find(({ code }) => code === 'unauthorized');
  if (unauthorized !== undefined) throw unauthorized;
  if (errors.length === outcomes.length) throw worst(errors);
  return outcomes.map((outcome) =>
    outcome instanceof HttpError ? new RespError(errorText(outcome)) : outcome,
  );
}

/** No reply, or one that says that the node cannot run anything now. */
function isMissing(outcome: Outcome): outcome is HttpError | RespError {
  return outcome instanceof HttpError || (outcome instanceof RespError && isPassing(outcome));
}

/** One that does not promise that nothing ran, if there is one. */
function worst<T extends HttpError | RespError>(missing: readonly T[]): T {
  const unknown = missing.find((one) => one instanceof HttpError && one.code === 'outcome_unknown');
  return unknown ?? (missing[0] as T);
}
