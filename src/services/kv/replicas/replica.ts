import type { Row } from '../commands/commands.js';
import { type Finish, rowsPayload } from '../redis/runner.js';
import { Session, type SessionOptions } from '../redis/session.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import { type Command, encodeCommand } from '../resp/resp-encoder.js';
import { ASK_REPLICATION, type Replication, readReplication } from './replication.js';

/** Says that a replica cannot answer: the primary has to. */
export const UNFIT = Symbol('unfit');

const ASK = encodeCommand(ASK_REPLICATION);

/** One connection to a replica, on which the replica's state is known for every read. */
export class Replica {
  private readonly session: Session;
  private state: Replication | undefined;
  private asked = false;

  constructor(private readonly options: Omit<SessionOptions, 'onOpen' | 'onClose' | 'greeting'>) {
    this.session = new Session({
      ...options,
      greeting: [ASK_REPLICATION],
      onOpen: ([reply]) => {
        this.state = readReplication(reply);
      },
      onClose: () => {
        this.state = undefined;
        this.asked = false;
      },
    });
  }

  /** What it said last; `undefined` while there is no connection. */
  get replication(): Replication | undefined {
    return this.state;
  }

  /**
   * Sends rows that read, in one write behind a question for the replica's state.
   * @param isFit judges the state that the replica had before the first row
   * @returns `UNFIT` when `isFit` says no, and for an error: the primary has the last word
   * @throws HttpError as `Runner.run`
   */
  read<T>(
    rows: readonly Row[],
    isFit: (replication: Replication) => boolean,
    finish: Finish<T>,
  ): Promise<T | typeof UNFIT> {
    this.ask();
    return this.session.run(rowsPayload(rows), rows.length, (replies) => {
      // replies keep their order: this is the answer to the last question that was sent before the rows
      if (this.state === undefined || !isFit(this.state)) return UNFIT;
      return replies.some(isError) ? UNFIT : finish(replies);
    });
  }

  /** Keeps the state fresh while nobody reads, leaves a server that is no replica, and checks that the password still holds. */
  recheck(): void {
    const { session, state } = this;
    const { username, password, sentinels } = this.options.endpoint;
    if (!session.isOpen) return;
    if (password !== undefined) this.login(username === undefined ? [password] : [username, password]);
    this.ask();
    // with Sentinel there may be another one; a fixed address is that server's, whatever it does
    if (sentinels !== undefined && !(state?.role === 'slave' && state.linked))
      session.cut('the server does not follow a primary');
  }

  close(): void {
    this.session.close();
  }

  private login(login: Command): void {
    const answer = this.session.run(encodeCommand(['AUTH', ...login]), 1, ([reply]) => {
      if (reply instanceof RespError && reply.text.startsWith('WRONGPASS ')) this.session.cut(reply.text);
    });
    // a connection that broke is opened again
    answer.catch(() => undefined);
  }

  /** All that is read within one turn of the event loop shares a question: it goes out in the same write, first. */
  private ask(): void {
    if (this.asked) return;
    this.asked = true;
    const answer = this.session.run(ASK, 1, ([reply]) => {
      this.state = readReplication(reply);
    });
    // the connection broke: that ends the state too
    answer.catch(() => undefined);
    setImmediate(() => {
      this.asked = false;
    });
  }
}

const isError = (reply: RespValue) => reply instanceof RespError;
