import { notConnected } from '../errors.js';
import type { Session, SessionOptions } from '../redis/session.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import { type Command, encodeCommand } from '../resp/resp-encoder.js';
import type { FeedProtocol } from './feed-protocol.js';
import { type Topic, topicKey } from './topic.js';
import { type Listener, WantedTopic } from './wanted-topic.js';

export type OpenSession = (
  options: Required<Pick<SessionOptions, 'takePush' | 'onOpen' | 'onClose'>>,
) => Session;

/**
 * One connection on which Redis sends by itself, shared by all streams of one user. A topic is asked for when its first
 * listener comes and given up after its last: commands keep their order on the connection, so a topic that comes back
 * while it is being given up is a new one whose confirmation comes later. When the connection breaks, listeners stay and
 * their topics are asked for again.
 */
export class Feed {
  private readonly session: Session;
  private readonly topics = new Map<string, WantedTopic>();
  private readonly pulse: NodeJS.Timeout;

  /** @param pulseMs how often Redis is asked for a sign of life; the session's `stallMs` is the deadline for it */
  constructor(
    open: OpenSession,
    private readonly protocol: FeedProtocol,
    pulseMs: number,
  ) {
    this.session = open({
      takePush: (value) => this.take(value),
      onOpen: () => this.askAgain(),
      onClose: () => this.interrupt(),
    });
    this.pulse = setInterval(() => this.beat(), pulseMs);
    this.pulse.unref();
  }

  /** Whether nobody listens. */
  get isIdle(): boolean {
    return [...this.topics.values()].every(({ isUnwanted }) => isUnwanted);
  }

  /** Resolves at the first connection. @throws HttpError `backend_unavailable` when the first attempt fails */
  async opened(): Promise<void> {
    await this.session.settled();
    if (!this.session.isOpen) throw notConnected(this.session.failure);
  }

  /**
   * Resolves when Redis has confirmed `topic`, after `listener` was told so.
   * @throws HttpError `backend_unavailable`; RefusedByRedis
   */
  join(topic: Topic, listener: Listener): Promise<void> {
    if (!this.session.isOpen) return Promise.reject(notConnected(this.session.failure));
    const wanted = this.wantedOf(topic);
    const joined = wanted.join(listener);
    if (wanted.state === 'lost') this.ask(wanted);
    return joined;
  }

  /** Without effect when `listener` did not join. */
  leave(topic: Topic, listener: Listener): void {
    const wanted = this.topics.get(topicKey(topic.kind, topic.name));
    if (wanted === undefined) return;
    wanted.leave(listener);
    if (wanted.isUnwanted) this.giveUp(wanted);
  }

  /** Ends all streams and the connection. */
  close(): void {
    clearInterval(this.pulse);
    for (const wanted of this.topics.values()) wanted.end();
    this.topics.clear();
    this.session.close();
  }

  private wantedOf(topic: Topic): WantedTopic {
    const known = this.topics.get(topicKey(topic.kind, topic.name));
    if (known !== undefined) return known;
    const wanted = new WantedTopic(topic);
    this.topics.set(wanted.key, wanted);
    return wanted;
  }

  private take(value: RespValue): boolean {
    const push = this.protocol.read(value);
    if (push === undefined) return false;
    this.topics.get(push.topic)?.message(push.event);
    return true;
  }

  private ask(wanted: WantedTopic): void {
    wanted.state = 'asked';
    this.send(
      this.protocol.begin(wanted.topic),
      (reply) => this.answered(wanted, reply),
      (error) => this.lose(wanted, error),
    );
  }

  private answered(wanted: WantedTopic, reply: RespValue): void {
    // all have left meanwhile
    if (this.topics.get(wanted.key) !== wanted) return;
    if (!(reply instanceof RespError)) {
      wanted.confirm();
      return;
    }
    wanted.refuse(reply);
    if (wanted.isUnwanted) this.topics.delete(wanted.key);
  }

  private giveUp(wanted: WantedTopic): void {
    const command = this.protocol.end(wanted.topic);
    // it goes on as long as the connection does: who comes meanwhile must not ask for it twice
    if (command === undefined && wanted.state !== 'lost') return;
    this.topics.delete(wanted.key);
    if (command === undefined || !this.session.isOpen) return;
    this.send(command, (reply) => {
      // such as BUSY: were it forgotten, nothing would ever give it up
      if (reply instanceof RespError) this.wantedOf(wanted.topic);
    });
  }

  private interrupt(): void {
    for (const wanted of this.topics.values()) this.lose(wanted);
  }

  private lose(wanted: WantedTopic, cause?: unknown): void {
    wanted.lose(cause);
    if (wanted.isUnwanted && this.topics.get(wanted.key) === wanted) this.topics.delete(wanted.key);
  }

  private askAgain(): void {
    for (const wanted of this.topics.values()) {
      if (wanted.state !== 'lost') continue;
      if (wanted.isUnwanted) this.giveUp(wanted);
      else this.ask(wanted);
    }
  }

  private beat(): void {
    if (!this.session.isOpen) return;
    this.askAgain();
    if (this.session.pending === 0) this.send(this.protocol.ping, () => undefined);
  }

  /** @param onLost the connection broke before the reply; `interrupt` hears of that as well */
  private send(
    command: Command,
    onReply: (reply: RespValue) => void,
    onLost: (error: unknown) => void = () => undefined,
  ): void {
    this.session.run(encodeCommand(command), 1, ([reply]) => onReply(reply)).catch(onLost);
  }
}
