import type { Socket } from 'node:net';
import { HttpError } from '../../../http/errors.js';
import type { Logger } from '../../../lib/logger.js';
import { notConnected } from '../errors.js';
import { RespError, RespStatus, type RespValue } from '../resp/resp-decoder.js';
import { type Command, encodeCommands, type Payload } from '../resp/resp-encoder.js';
import type { Confinement } from './confinement.js';
import { Connection, type Endpoint } from './connection.js';
import { delayOf, greetingOf, refusalOf } from './greeting.js';
import { OpenQuestions, PASSING_PAUSE_MS, type Questions } from './open-questions.js';
import { withoutRedirection } from './redirection.js';
import { Wire, type WireObserver } from './wire.js';

export interface SessionOptions {
  readonly endpoint: Endpoint;
  readonly connectTimeoutMs: number;
  /** Silence of Redis, while replies are due, after which the connection is given up, in ms. */
  readonly stallMs: number;
  /** Bytes of replies that one request may get. */
  readonly replyLimit: number;
  readonly log: Logger;
  readonly observer?: WireObserver;
  /** Sent first on every new connection; what Redis refuses is asked again until it answers. */
  readonly greeting?: readonly Command[];
  /** Has every connection go on as a user who may do less. */
  readonly confinement?: Confinement | undefined;
  /** Whether to find out if transactions are allowed; needed where they are sent without a look at the reply to MULTI. */
  readonly probesTransactions?: boolean;
  /** Ends all attempts once Redis refuses the login: of users, who come and go. */
  readonly givesUp?: boolean;
  /** It is one of several that make up a cluster: who runs commands follows its redirections. */
  readonly isNode?: boolean;
  /** Gets the replies of the greeting, before anybody else's command is sent; again when what was refused is answered. */
  readonly onOpen?: (replies: readonly RespValue[]) => void;
  readonly onClose?: () => void;
  /** Takes what Redis sends unasked; `false` of what is a reply. */
  readonly takePush?: (value: RespValue) => boolean;
}

/** One logged-in connection with RESP2 on it, opened again whenever it breaks. Requests that share it keep their order. */
export class Session {
  private readonly connection: Connection;
  private wire: Wire | undefined;
  private readonly waiting = new Set<() => void>();
  private closed = false;
  private readonly questions: OpenQuestions;
  private isConfined = false;

  constructor(private readonly options: SessionOptions) {
    const { endpoint, connectTimeoutMs, log, givesUp = false } = options;
    this.questions = new OpenQuestions(options.greeting ?? [], options.probesTransactions === true);
    this.connection = new Connection({
      endpoint,
      connectTimeoutMs,
      log,
      givesUp,
      onSocket: (socket) => this.takeOver(socket),
      onFailure: () => this.tellWaiting(),
    });
  }

  get isOpen(): boolean {
    return this.wire !== undefined;
  }

  /** Why it is not open. */
  get failure(): Error | undefined {
    return this.connection.failure;
  }

  /** Resolves when it is open or an attempt has failed, at once where one of them is already known. */
  async settled(): Promise<void> {
    if (this.isOpen || this.closed || this.connection.failure !== undefined) return;
    await new Promise<void>((resolve) => this.waiting.add(resolve));
  }

  /** @throws HttpError at once while Redis is away; see `Wire.submit` */
  run<T>(payload: Payload, expected: number, finish: (replies: RespValue[]) => T): Promise<T> {
    if (this.wire === undefined) return Promise.reject(notConnected(this.failure));
    return this.wire.submit(payload, expected, finish);
  }

  /** Why MULTI is refused on this connection: without it the rows of a transaction would run one by one. */
  get transactionRefusal(): RespError | undefined {
    return this.questions.transactionRefusal;
  }

  /** Requests whose replies are due. */
  get pending(): number {
    return this.wire?.pending ?? 0;
  }

  /**
   * Logs in once more; the connection is cut when Redis no longer takes the password.
   * @param login arguments of AUTH
   * @returns whether Redis accepted it
   * @throws HttpError as `run`
   */
  login(login: Command): Promise<boolean> {
    const { wire } = this;
    const { confinement } = this.options;
    // and back, in the same write: no command comes between
    const back: Command[] = this.isConfined && confinement ? [['AUTH', ...confinement.login]] : [];
    return this.run(encodeCommands([['AUTH', ...login], ...back]), 1 + back.length, ([reply, again]) => {
      if (again instanceof RespError) wire?.cut(new Error(again.text));
      if (reply instanceof RespStatus && reply.bytes.toString() === 'OK') return true;
      if (reply instanceof RespError && reply.text.startsWith('WRONGPASS ')) wire?.cut(new Error(reply.text));
      return false;
    });
  }

  /** Ends the connection for another one. */
  cut(reason: string): void {
    this.wire?.cut(new Error(reason));
  }

  close(): void {
    this.closed = true;
    this.connection.close();
    this.tellWaiting();
  }

  /** Asks Redis for a sign of life. @throws HttpError with a reason fit to be shown */
  check(): Promise<void> {
    if (this.wire === undefined)
      return Promise.reject(new HttpError('backend_unavailable', `not connected${reasonOf(this.failure)}`));
    return this.run(encodeCommands([['PING']]), 1, ([reply]) => {
      if (reply instanceof RespError) throw new HttpError('backend_unavailable', classWord(reply.text));
    });
  }

  private takeOver(socket: Socket): void {
    const { stallMs, observer, takePush, endpoint, isNode = false } = this.options;
    const isFoundBySentinel = endpoint.sentinels?.role === 'master';
    const reviseError = (error: RespError): RespError => {
      if (isFoundBySentinel && LOST_ROLE.test(error.text)) return this.retire(wire);
      return isNode ? error : withoutRedirection(error);
    };
    const wire = new Wire(socket, stallMs, { observer, takePush, reviseError });
    socket.once('close', () => {
      if (this.wire !== wire) return;
      this.wire = undefined;
      this.options.onClose?.();
    });
    this.greet(wire).catch((error: Error) => {
      wire.cut(error);
      this.connection.failed(error);
    });
  }

  private async greet(wire: Wire): Promise<void> {
    const { endpoint, confinement } = this.options;
    const own = greetingOf(endpoint);
    const questions = this.questions.all;
    for (;;) {
      // who is confined goes on as another user, to whom the questions are answered
      const commands = confinement === undefined ? [...own, ...questions.commands] : own;
      const replies = await sendOn(wire, commands);
      const ownReplies = replies.splice(0, own.length);
      const delay = delayOf(ownReplies) ?? (await this.letIn(ownReplies, wire));
      if (delay === undefined) {
        if (confinement !== undefined) replies.push(...(await sendOn(wire, questions.commands)));
        const pauseMs = this.questions.learn(questions, replies);
        this.opened(wire, replies);
        this.askLater(wire, questions, pauseMs);
        return;
      }
      this.connection.failed(new Error(delay));
      await new Promise((resolve) => setTimeout(resolve, PASSING_PAUSE_MS));
    }
  }

  /** @returns why the connection cannot be used yet @throws Error why it never can */
  private async letIn(ownReplies: readonly RespValue[], wire: Wire): Promise<string | undefined> {
    const { endpoint, confinement } = this.options;
    const refusal = refusalOf(ownReplies, endpoint);
    if (refusal !== undefined) throw new Error(refusal);
    if (confinement === undefined) return undefined;
    const { isEntered, delay } = await confinement.enter((commands) => sendOn(wire, commands));
    this.isConfined = isEntered;
    return delay;
  }

  /** Asks again, on the connection that others use meanwhile. */
  private askLater(wire: Wire, questions: Questions, pauseMs: number | undefined): void {
    if (pauseMs === undefined) return;
    const timer = setTimeout(() => {
      if (this.wire === wire) this.ask(wire, questions).catch((error: Error) => wire.cut(error));
    }, pauseMs);
    timer.unref();
  }

  private async ask(wire: Wire, questions: Questions): Promise<void> {
    const { commands } = questions;
    const pauseMs = await wire.submit(encodeCommands(commands), commands.length, (replies) => {
      const pause = this.questions.learn(questions, replies);
      if (this.wire === wire) this.options.onOpen?.(replies);
      return pause;
    });
    this.askLater(wire, questions, pauseMs);
  }

  /** The server has lost its role: nobody new comes, who is there gets a reply, and then another server is asked for. */
  private retire(wire: Wire): RespError {
    if (this.wire === wire) {
      this.wire = undefined;
      this.options.onClose?.();
      wire
        .submit(encodeCommands([['PING']]), 1, () =>
          wire.cut(new Error('the server is no longer the primary')),
        )
        .catch(() => undefined); // it broke by itself
    }
    return new RespError('TRYAGAIN the server is no longer the primary; nothing was executed');
  }

  private opened(wire: Wire, replies: readonly RespValue[]): void {
    if (this.closed) return;
    this.wire = wire;
    // the greeting is Portico's own
    wire.limitReplies(this.options.replyLimit);
    this.connection.succeeded();
    this.options.onOpen?.(replies);
    this.tellWaiting();
  }

  private tellWaiting(): void {
    for (const tell of this.waiting) tell();
    this.waiting.clear();
  }
}

/** @returns one reply each, none for none */
async function sendOn(wire: Wire, commands: readonly Command[]): Promise<RespValue[]> {
  if (commands.length === 0) return [];
  return wire.submit(encodeCommands(commands), commands.length, (replies) => replies);
}

/** A write that a replica refused, a script's included: in the server's words, as a script may have an error READONLY of its own. */
const LOST_ROLE = /^READONLY You can't write against a read only |instance is now a read-only replica/;

/** The system's code (ECONNREFUSED) or Redis' class word (WRONGPASS) of a failure, in brackets. */
export function reasonOf(failure: Error | undefined): string {
  if (failure === undefined) return '';
  const { code } = failure as NodeJS.ErrnoException;
  return ` (${code ?? classWord(failure.message)})`;
}

/** The class word of an error reply: the rest may quote what was sent. */
function classWord(text: string): string {
  return /^[A-Z]+(?= )/.exec(text)?.[0] ?? 'error';
}
