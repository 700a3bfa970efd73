import type { Address } from '../../../lib/address.js';
import type { Row } from '../commands/commands.js';
import type { Command } from '../resp/resp-encoder.js';
import type { Finish, Runner } from './runner.js';
import type { Session, SessionOptions } from './session.js';

/** Of a user of Redis' own. */
export interface Credentials {
  readonly name: string;
  readonly password: string;
}

/** The servers of one database as one user sees them: connections that are opened, watched and closed together. */
export interface Backend extends Runner {
  /** There is a connection whose login was accepted. */
  readonly isOpen: boolean;
  /** Why it is not open. */
  readonly failure: Error | undefined;
  /** Resolves when it is open or an attempt has failed, at once where one of them is already known. */
  settled(): Promise<void>;
  /** Requests whose replies are due. */
  readonly pending: number;
  /**
   * Logs in once more on every connection; those that refuse the password are cut.
   * @param login arguments of AUTH
   * @returns whether all accepted
   * @throws HttpError when a connection breaks before it answers
   */
  login(login: Command): Promise<boolean>;
  /**
   * A transaction whose rows never run one by one, even where the user has meanwhile lost the right to MULTI. For a backend
   * that one request has to itself. @throws HttpError as `transaction`
   */
  guardedTransaction<T>(rows: readonly Row[], finish: Finish<T>): Promise<T>;
  /** Whether all of the database can be used. @throws HttpError with a reason fit to be shown */
  check(): Promise<void>;
  close(): void;
}

/** How a database is reached: one server, or a cluster of them. */
export interface Servers {
  /** For everybody's requests: kept open from the start, with a connection for each lane. */
  readonly shared: Backend;
  /** For one user or one request: one connection a server, which requests wait for. */
  open(options?: OwnOptions): Backend;
}

export interface OwnOptions {
  readonly user?: Credentials;
  /** As in `SessionOptions`, where it is not the database's own. */
  readonly stallMs?: number;
}

export type OpenSession = (options: OpenSessionOptions) => Session;

export interface OpenSessionOptions
  extends OwnOptions,
    Partial<Pick<SessionOptions, 'greeting' | 'probesTransactions' | 'onOpen' | 'onClose' | 'takePush'>> {
  /** Which server; else the one that the configuration names. */
  readonly at?: Address;
}
