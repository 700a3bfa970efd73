import type { Socket } from 'node:net';
import { HttpError } from '../../http/errors.js';
import type { Logger } from '../../lib/logger.js';
import { withoutRedirection } from './cluster/redirection.js';
import { Connection, type Endpoint } from './connection.js';
import { notConnected } from './errors.js';
import { delayOf, greetingOf, refusalOf, TRANSACTION_PROBE, transactionRefusalOf } from './greeting.js';
import { isLasting } from './passing.js';
import { RespError, RespStatus, type RespValue } from './resp-decoder.js';
import { type Command, encodeCommands, type Payload } from './resp-encoder.js';
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

/** After what Redis says in passing (LOADING, BUSY) it is left alone so long before it is asked again, in ms. */
const PASSING_PAUSE_MS = 100;
/** And so long after another refusal, such as of a right that the user lacks and may get. */
const REFUSED_PAUSE_MS = 5_000;
/** A connection that the probe of transactions made useless is followed by ones that are not probed, for so long. */
const UNPROBED_MS = 60_000;

/** What is still to be known of a connection: the rest of its greeting, and whether it takes transactions. */
interface Questions {
  readonly probe: readonly Command[];
  readonly greeting: readonly Command[];
}

/** One logged-in connection with RESP2 on it, opened again whenever it breaks. Requests that share it keep their order. */
export class Session {
  private readonly connection: Connection;
  private wire: Wire | undefined;
  private readonly waiting = new Set<() => void>();
  private closed = false;
  private refusal: RespError | undefined;
  private probesFrom: number;

  constructor(private readonly options: SessionOptions) {
    const { endpoint, connectTimeoutMs, log, givesUp = false } = options;
    this.probesFrom = options.probesTransactions === true ? 0 : Number.POSITIVE_INFINITY;
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
    return this.refusal;
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
    return this.run(encodeCommands([['AUTH', ...login]]), 1, ([reply]) => {
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
    const { endpoint, greeting = [] } = this.options;
    const own = greetingOf(endpoint);
    const questions = { probe: performance.now() < this.probesFrom ? [] : TRANSACTION_PROBE, greeting };
    const commands = [...own, ...questions.probe, ...greeting];
    for (;;) {
      const replies = await wire.submit(encodeCommands(commands), commands.length, (all) => all);
      const ownReplies = replies.splice(0, own.length);
      const delay = delayOf(ownReplies);
      if (delay === undefined) {
        const refusal = refusalOf(ownReplies, endpoint);
        if (refusal !== undefined) throw new Error(refusal);
        const pauseMs = this.learn(questions, replies);
        this.opened(wire, replies);
        if (pauseMs !== undefined) this.askLater(wire, questions, pauseMs);
        return;
      }
      this.connection.failed(new Error(delay));
      await new Promise((resolve) => setTimeout(resolve, PASSING_PAUSE_MS));
    }
  }

  /**
   * Reads the replies to questions and takes those of the probe from the front.
   * @returns after how many ms to ask again; `undefined` when all was answered
   * @throws Error when the connection is stuck in the transaction of the probe: the next ones are not probed
   */
  private learn({ probe }: Questions, replies: RespValue[]): number | undefined {
    const { refusal, isStuck } = transactionRefusalOf(replies.splice(0, probe.length));
    if (probe.length > 0) this.refusal = refusal;
    if (isStuck) {
      this.probesFrom = performance.now() + UNPROBED_MS;
      throw new Error(`transactions cannot be ended: ${refusal?.text}`);
    }
    const refused = [refusal, ...replies].filter((reply) => reply instanceof RespError);
    if (refused.length === 0) return undefined;
    return refused.every(isLasting) ? REFUSED_PAUSE_MS : PASSING_PAUSE_MS;
  }

  /** What Redis said was true when it said it: it is asked again, on the connection that others use meanwhile. */
  private askLater(wire: Wire, questions: Questions, pauseMs: number): void {
    const timer = setTimeout(() => {
      if (this.wire !== wire) return;
      this.ask(wire, questions).catch((error: Error) => wire.cut(error));
    }, pauseMs);
    timer.unref();
  }

  private async ask(wire: Wire, questions: Questions): Promise<void> {
    const commands = [...questions.probe, ...questions.greeting];
    const pauseMs = await wire.submit(encodeCommands(commands), commands.length, (replies) => {
      const pause = this.learn(questions, replies);
      if (this.wire === wire) this.options.onOpen?.(replies);
      return pause;
    });
    if (pauseMs !== undefined) this.askLater(wire, questions, pauseMs);
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
