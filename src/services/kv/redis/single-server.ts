import type { Lane, Row } from '../commands/commands.js';
import type { RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';
import type { Backend, OpenSession, OwnOptions, Servers } from './backend.js';
import { exclusiveTransaction, type Finish, SessionRunner } from './runner.js';
import type { Session } from './session.js';

/** A database on one server, or on whatever server is the primary now. */
export class SingleServer implements Servers {
  readonly shared: Backend;

  /** @param onCommands gets the reply of COMMAND, for every connection anew */
  constructor(
    private readonly openSession: OpenSession,
    onCommands: (reply: RespValue) => void,
  ) {
    this.shared = new SharedSessions({
      main: openSession({
        probesTransactions: true,
        greeting: [['COMMAND']],
        onOpen: ([table]) => onCommands(table),
      }),
      bulk: openSession({ probesTransactions: true }),
      scripts: openSession({ probesTransactions: true }),
    });
  }

  open(options: OwnOptions = {}): Backend {
    return new OwnSession(this.openSession(options));
  }
}

/** One server behind a session for each lane. Nobody waits for a connection: a request is refused while there is none. */
class SharedSessions extends SessionRunner implements Backend {
  private readonly all: readonly Session[];

  constructor(private readonly lanes: Readonly<Record<Lane, Session>>) {
    super(lanes);
    this.all = Object.values(lanes);
  }

  guardedTransaction<T>(rows: readonly Row[], finish: Finish<T>): Promise<T> {
    return this.transaction(rows, finish);
  }

  get failure(): Error | undefined {
    return this.lanes.main.failure;
  }

  settled(): Promise<void> {
    return this.lanes.main.settled();
  }

  get pending(): number {
    return this.all.reduce((sum, session) => sum + session.pending, 0);
  }

  login(login: Command): Promise<boolean> {
    return loginAll(this.all, login);
  }

  check(): Promise<void> {
    return this.lanes.main.check();
  }

  close(): void {
    for (const session of this.all) session.close();
  }
}

/** One server behind one session for all lanes, opened when first needed: requests wait until that has come to something. */
class OwnSession implements Backend {
  private readonly runner: SessionRunner;

  constructor(private readonly session: Session) {
    this.runner = new SessionRunner({ main: session, bulk: session, scripts: session });
  }

  async run<T>(rows: readonly Row[], finish: Finish<T>): Promise<T> {
    if (!this.isOpen) await this.settled();
    return this.runner.run(rows, finish);
  }

  async transaction<T>(rows: readonly Row[], finish: Finish<T>): Promise<T> {
    if (!this.isOpen) await this.settled();
    return this.runner.transaction(rows, finish);
  }

  async guardedTransaction<T>(rows: readonly Row[], finish: Finish<T>): Promise<T> {
    if (!this.isOpen) await this.settled();
    return exclusiveTransaction(this.session, rows, finish);
  }

  get isOpen(): boolean {
    return this.session.isOpen;
  }

  get failure(): Error | undefined {
    return this.session.failure;
  }

  settled(): Promise<void> {
    return this.session.settled();
  }

  get pending(): number {
    return this.session.pending;
  }

  login(login: Command): Promise<boolean> {
    return loginAll([this.session], login);
  }

  check(): Promise<void> {
    return this.session.check();
  }

  close(): void {
    this.session.close();
  }
}

/** Sessions that are not open log in when they open. */
async function loginAll(sessions: readonly Session[], login: Command): Promise<boolean> {
  const open = sessions.filter(({ isOpen }) => isOpen);
  const accepted = await Promise.all(open.map((session) => session.login(login)));
  return accepted.every(Boolean);
}
