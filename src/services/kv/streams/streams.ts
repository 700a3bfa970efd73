import { HttpError } from '../../../http/errors.js';
import type { Principal } from '../../../http/route.js';
import { IdleRegistry } from '../../../lib/idle-registry.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import { AclPrincipal } from '../auth/rest-tokens.js';
import type { Session, SessionOptions } from '../redis/session.js';
import { EventStream, type StreamCounts } from './event-stream.js';
import { Feed } from './feed.js';
import { type FeedProtocol, MONITOR, PUBSUB } from './feed-protocol.js';
import type { StreamKind, Topic } from './topic.js';

export interface StreamsOptions {
  readonly open: (options: Partial<SessionOptions>, user: AclPrincipal | undefined) => Session;
  /** Whether Redis still takes the password of `user`, or that of the shared connections. @throws HttpError `unauthorized` */
  readonly verify: (user: AclPrincipal | undefined) => Promise<void>;
  /** Streams at the same time. */
  readonly limit: number;
  /** How long Redis may owe a reply, in ms. */
  readonly stallMs: number;
  readonly lifecycle: ReleaseRegistry;
}

/** The connection of one user, or the shared one, with its streams. */
interface UserFeed {
  readonly user: AclPrincipal | undefined;
  readonly feed: Feed;
  verifying: boolean;
}

/** A connection without streams is kept so long for the next one, in ms. */
const IDLE_MS = 30_000;
/** Redis goes on sending to a connection whose password was taken away: so often it is checked, in ms. */
const VERIFY_MS = 1_000;
/** Longest pause between two questions for a sign of life, in ms. */
const LONGEST_PULSE_MS = 5_000;

/** All streams of a database: one connection to Redis for messages and one for the monitor, and those of ACL users. */
export class Streams {
  readonly counters: Readonly<Record<StreamKind, StreamCounts>> = {
    subscribe: { open: 0, messages: 0 },
    psubscribe: { open: 0, messages: 0 },
    monitor: { open: 0, messages: 0 },
  };
  private readonly pubsub = userFeeds(IDLE_MS);
  // a monitor costs Redis more than all else: it ends with its last stream
  private readonly monitors = userFeeds(0);

  constructor(private readonly options: StreamsOptions) {
    const timer = setInterval(() => this.verifyAll(), VERIFY_MS);
    timer.unref();
    options.lifecycle.onStop('kv: streams', async () => {
      clearInterval(timer);
      await Promise.all([this.pubsub.closeAll(), this.monitors.closeAll()]);
    });
  }

  /** A place for one more stream, until it is closed. @throws HttpError `overloaded` */
  take(kind: StreamKind): EventStream {
    const open = Object.values(this.counters).reduce((sum, counts) => sum + counts.open, 0);
    if (open >= this.options.limit) throw new HttpError('overloaded', 'Too many streams are open');
    return new EventStream(kind, this.counters[kind]);
  }

  /**
   * Resolves when Redis has confirmed all of `topics`, which are of the stream's kind and differ.
   * @throws HttpError `backend_unavailable`, `unauthorized`, `overloaded`, `client_gone`; RefusedByRedis
   */
  async begin(stream: EventStream, topics: readonly Topic[], principal: Principal): Promise<void> {
    const user = principal instanceof AclPrincipal ? principal : undefined;
    if (user !== undefined) await this.options.verify(user);
    const isMonitor = stream.kind === 'monitor';
    const protocol = isMonitor ? MONITOR : PUBSUB;
    const feeds = isMonitor ? this.monitors : this.pubsub;
    const hold = await feeds.hold(user?.key ?? '', () => this.openFeed(protocol, user));
    stream.onClose(() => hold.release());
    if (stream.isClosed) throw new HttpError('client_gone');
    const { feed } = hold.value;
    const joined = topics.map((topic) => {
      stream.onClose(() => feed.leave(topic, stream));
      return feed.join(topic, stream);
    });
    await Promise.all(joined);
  }

  private async openFeed(protocol: FeedProtocol, user: AclPrincipal | undefined): Promise<UserFeed> {
    const { open, stallMs } = this.options;
    const pulseMs = Math.min(stallMs / 2, LONGEST_PULSE_MS);
    const feed = new Feed((options) => open(options, user), protocol, pulseMs);
    try {
      await feed.opened();
    } catch (error) {
      feed.close();
      throw error;
    }
    return { user, feed, verifying: false };
  }

  private verifyAll(): void {
    for (const feeds of [this.pubsub, this.monitors]) {
      for (const userFeed of feeds.values()) {
        if (!userFeed.verifying && !userFeed.feed.isIdle) void this.verify(userFeed, feeds);
      }
    }
  }

  /** Ends the streams of a user who can no longer log in. */
  private async verify(userFeed: UserFeed, feeds: IdleRegistry<UserFeed>): Promise<void> {
    const { user } = userFeed;
    userFeed.verifying = true;
    try {
      await this.options.verify(user);
    } catch (error) {
      // of what is away nothing can be said
      if (error instanceof HttpError && error.code === 'unauthorized') await feeds.close(user?.key ?? '');
    } finally {
      userFeed.verifying = false;
    }
  }
}

function userFeeds(idleMs: number): IdleRegistry<UserFeed> {
  return new IdleRegistry({ idleMs, close: async ({ feed }) => feed.close() });
}
