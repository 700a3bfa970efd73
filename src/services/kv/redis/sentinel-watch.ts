import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Address } from '../../../lib/address.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { Logger } from '../../../lib/logger.js';
import type { RespValue } from '../resp/resp-decoder.js';
import { encodeCommands } from '../resp/resp-encoder.js';
import type { Follower, SentinelEndpoints } from './connection.js';
import { Session } from './session.js';

export interface SentinelWatchOptions {
  readonly sentinels: SentinelEndpoints;
  /** Of the monitored primary. */
  readonly name: string;
  readonly connectTimeoutMs: number;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** What one Sentinel says of the primary. */
interface View extends Address {
  /** Grows with every failover: of two views the one with the higher is the newer. */
  readonly epoch: number;
}

const WATCH_MS = 1_000;
/** A Sentinel that is gone is outvoted by newer epochs, unless all others were set up anew: they begin at 0 again. */
const VALID_MS = 30_000;
/** A Sentinel's answers are short. */
const REPLY_LIMIT = 1024 * 1024;

/**
 * Asks the Sentinels every second which server is the primary, and has connections to another one broken. A primary
 * whose machine is gone, or that only the gateway still reaches, breaks none by itself. ioredis' own detector prints
 * to the console, and wants a subscription on every Sentinel for each connection.
 */
export class SentinelWatch {
  private readonly sessions: readonly Session[];
  private readonly followers = new Set<Follower>();
  /** Each Sentinel's last word, and when it said so. */
  private readonly views = new Map<Session, { readonly view: View; readonly at: number }>();

  constructor(private readonly options: SentinelWatchOptions) {
    const { sentinels, connectTimeoutMs, log, lifecycle } = options;
    const { username, password, tls } = sentinels;
    this.sessions = sentinels.nodes.map(
      ({ host, port }) =>
        new Session({
          endpoint: {
            host,
            port,
            db: 0,
            ...(username === undefined ? {} : { username }),
            ...(password === undefined ? {} : { password }),
            ...(tls === undefined ? {} : { tls }),
          },
          connectTimeoutMs,
          stallMs: connectTimeoutMs,
          replyLimit: REPLY_LIMIT,
          log: log.child({ sentinel: `${host}:${port}` }),
        }),
    );
    const timer = setInterval(() => {
      for (const session of this.sessions) this.ask(session);
    }, WATCH_MS);
    timer.unref();
    lifecycle.onStop('kv: Sentinels', () => {
      clearInterval(timer);
      for (const session of this.sessions) session.close();
    });
  }

  /** The same Sentinels, for connections to the primary that follow it. */
  get endpoints(): SentinelEndpoints {
    return { ...this.options.sentinels, followers: this.followers };
  }

  private ask(session: Session): void {
    const { name } = this.options;
    // the first is what connections are made by; only the second tells the epoch
    const questions = [
      ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name],
      ['SENTINEL', 'MASTER', name],
    ];
    session
      .run(encodeCommands(questions), questions.length, ([address, facts]) => {
        const view = viewOf(address, facts);
        if (view !== undefined) this.views.set(session, { view, at: performance.now() });
      })
      .then(() => this.compare())
      .catch(() => undefined); // it is away: the others are asked too
  }

  private async compare(): Promise<void> {
    const oldest = performance.now() - VALID_MS;
    const recent = [...this.views.values()].filter(({ at }) => at > oldest);
    const newest = newestOf(recent.map(({ view }) => view));
    if (newest === undefined) return;
    const hosts = await addressesOf(newest.host);
    if (hosts.length === 0) return;
    for (const follower of this.followers) follower.leaveUnlessAt(hosts, newest.port);
  }
}

function viewOf(address: RespValue, facts: RespValue): View | undefined {
  if (!Array.isArray(address) || !Array.isArray(facts)) return undefined;
  const epochAt = facts.findIndex((field, i) => i % 2 === 0 && String(field) === 'config-epoch');
  const [host, port, epoch] = [address[0], address[1], facts[epochAt + 1]].map(String);
  if (host === undefined || epochAt < 0) return undefined;
  return { host, port: Number(port), epoch: Number(epoch) };
}

/** The newest view; `undefined` while Sentinels contradict each other about it. */
function newestOf(views: readonly View[]): View | undefined {
  const [newest, ...others] = [...views].sort((a, b) => b.epoch - a.epoch);
  if (newest === undefined) return undefined;
  const agreed = others.every(
    ({ host, port, epoch }) => epoch < newest.epoch || (host === newest.host && port === newest.port),
  );
  return agreed ? newest : undefined;
}

/** Numeric addresses, as sockets show them: Sentinels may name servers by host name. */
async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host) === 4) return [host];
  try {
    // an IPv6 address comes back in its shortest form
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch {
    return [];
  }
}
