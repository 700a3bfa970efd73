import { type Lane, laneOfRows, type Row } from '../commands/commands.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import { type Command, encodeCommand, encodeCommands, type Payload } from '../resp/resp-encoder.js';
import { encodeInSlices } from '../resp/sliced-encoder.js';
import type { Session } from './session.js';

/** Makes an answer of replies; what it throws rejects the run. */
export type Finish<T> = (replies: RespValue[]) => T;

/** Runs commands on one Redis database, whatever its topology. */
export interface Runner {
  /**
   * Sends `rows` in order; `finish` gets one reply each.
   * @param after commands of Portico's own that follow in the same write; their replies come last
   * @throws HttpError `backend_unavailable` or `overloaded` when nothing ran, `outcome_unknown` when that cannot be told
   */
  run<T>(rows: readonly Row[], finish: Finish<T>, after?: readonly Command[]): Promise<T>;
  /** As one transaction; `finish` gets the replies of MULTI, of each row, of EXEC, and of `after`. @throws as `run` */
  transaction<T>(rows: readonly Row[], finish: Finish<T>, after?: readonly Command[]): Promise<T>;
}

const MULTI: Command = ['MULTI'];
const EXEC: Command = ['EXEC'];

export function rowsPayload(rows: readonly Row[], after?: readonly Command[]): Payload {
  if (rows.length === 1 && after === undefined) return encodeCommand((rows[0] as Row).command);
  const commands = rows.map((row) => row.command);
  return encodeCommands(after === undefined ? commands : [...commands, ...after]);
}

/** MULTI, the rows and EXEC: sent as one contiguous payload, between which nothing of another request can come. */
export function transactionCommands(rows: readonly Row[], after: readonly Command[] = []): Command[] {
  return [MULTI, ...rows.map((row) => row.command), EXEC, ...after];
}

/** Rows, and arguments of one of them, that take longer to encode than others may wait. */
const [MANY_ROWS, MANY_ARGUMENTS] = [2_000, 10_000] as const;

function isLargeToEncode(rows: readonly Row[]): boolean {
  return rows.length > MANY_ROWS || rows.some(({ command }) => command.length > MANY_ARGUMENTS);
}

/** One server behind one session for each lane, or one for all. */
export class SessionRunner implements Runner {
  constructor(private readonly sessions: Readonly<Record<Lane, Session>>) {}

  get isOpen(): boolean {
    return this.sessions.main.isOpen;
  }

  run<T>(rows: readonly Row[], finish: Finish<T>, after?: readonly Command[]): Promise<T> {
    const expected = rows.length + (after?.length ?? 0);
    const session = this.sessions[laneOfRows(rows)];
    if (isLargeToEncode(rows))
      return encodeInSlices(rows.map((row) => row.command).concat(after ?? [])).then((payload) =>
        session.run(payload, expected, finish),
      );
    return session.run(rowsPayload(rows, after), expected, finish);
  }

  transaction<T>(rows: readonly Row[], finish: Finish<T>, after?: readonly Command[]): Promise<T> {
    const session = this.sessions[laneOfRows(rows)];
    const { transactionRefusal } = session;
    if (transactionRefusal !== undefined)
      return Promise.resolve(finish([transactionRefusal, ...(after ?? []).map(() => null)]));
    const commands = transactionCommands(rows, after);
    if (isLargeToEncode(rows))
      return encodeInSlices(commands).then((payload) => session.run(payload, commands.length, finish));
    return session.run(encodeCommands(commands), commands.length, finish);
  }
}

/**
 * A transaction in two steps, on a session that nobody else uses: without MULTI, which a user may not be allowed, the rows
 * would run one by one.
 * @throws HttpError as `Runner.run`, and when the transaction could not be ended
 */
export async function exclusiveTransaction<T>(
  session: Session,
  rows: readonly Row[],
  finish: Finish<T>,
): Promise<T> {
  const begun = await session.run(encodeCommand(MULTI), 1, ([reply]) => reply);
  if (begun instanceof RespError) return finish([begun]);
  const payload = encodeCommands([...rows.map((row) => row.command), EXEC]);
  const replies = await session.run(payload, rows.length + 1, (all) => all);
  const ended = replies.at(-1);
  if (ended instanceof RespError && !ended.text.startsWith('EXECABORT ')) session.close();
  return finish([begun, ...replies]);
}
