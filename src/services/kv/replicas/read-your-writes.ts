import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { Logger } from '../../../lib/logger.js';
import { type Lane, laneOfRows, type Row } from '../commands/commands.js';
import type { Runner } from '../redis/runner.js';
import { isPassing } from '../resp/passing.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import { type Replica, UNFIT } from './replica.js';
import { ASK_REPLICATION, type Position, type Replication, readReplication } from './replication.js';
import { type Freshness, freshnessOf } from './sync-token.js';

/** Connections to one replica, or to whichever replica Sentinel names. */
export type ReplicaLanes = Readonly<Record<Exclude<Lane, 'scripts'>, Replica>>;

export interface ReadYourWritesOptions {
  readonly primary: Runner & { readonly isOpen: boolean };
  readonly replicas: readonly ReplicaLanes[];
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** Makes an answer of replies and of what its reader has seen with them. */
export type FreshFinish<T> = (replies: RespValue[], freshness: Freshness) => T;

/** How reads ended, since the start. */
export interface ReadCounts {
  /** Answered by a replica. */
  replica: number;
  /** Answered by the primary because a replica had not yet what the client had seen, or could not answer. */
  behind: number;
  /** Answered by the primary because no replica was usable, or because the client had seen an unknown place. */
  primary: number;
}

const RECHECK_MS = 1_000;
const AFTER = [ASK_REPLICATION];
/** These read, but what they leave or go on with belongs to one server. */
const BOUND = /SCAN|CURSOR|^TOUCH$/;

/**
 * Sends reads to replicas, and all else to the primary. A sync token says up to which place in the primary's writes its
 * holder has seen the database; it is the same on every gateway. A replica that has not come so far, or whose place is
 * in another history (after a failover), leaves the read to the primary.
 */
export class ReadYourWrites {
  readonly counts: ReadCounts = { replica: 0, behind: 0, primary: 0 };
  /** Of the primary, as of its last answer. */
  private history: string | undefined;
  private turn = 0;
  private warned = false;

  constructor(private readonly options: ReadYourWritesOptions) {
    const timer = setInterval(() => this.recheck(), RECHECK_MS);
    timer.unref();
    options.lifecycle.onStop('kv: replicas', () => {
      clearInterval(timer);
      for (const { main, bulk } of options.replicas) {
        main.close();
        bulk.close();
      }
    });
  }

  /** Sends rows in order, to one server. @param token of the request, if any @throws HttpError as `Runner.run` */
  run<T>(rows: readonly Row[], token: string | undefined, finish: FreshFinish<T>): Promise<T> {
    if (!rows.every(mayReadFromReplica)) return this.placed(rows, finish);
    const freshness = freshnessOf(token);
    if (freshness === 'any' || (freshness !== 'unknown' && freshness.history === this.history))
      return this.read(rows, freshness, finish);
    this.counts.primary += 1;
    return this.placed(rows, finish);
  }

  /** As one transaction; `finish` gets the replies of MULTI, of each row and of EXEC. @throws HttpError as `Runner.run` */
  transaction<T>(rows: readonly Row[], finish: FreshFinish<T>): Promise<T> {
    return this.options.primary.transaction(rows, this.withPlace(finish), AFTER);
  }

  private async read<T>(
    rows: readonly Row[],
    freshness: 'any' | Position,
    finish: FreshFinish<T>,
  ): Promise<T> {
    const replica = this.pick(laneOfRows(rows));
    const answered = (replies: RespValue[]) => finish(replies, freshness);
    if (replica !== undefined) {
      const isFit = (state: Replication) => this.isUsable(state) && hasSeen(state.position, freshness);
      // a read may be repeated, whatever became of it
      const answer = await replica.read(rows, isFit, answered).catch(() => UNFIT);
      if (answer !== UNFIT) {
        this.counts.replica += 1;
        return answer as T;
      }
      this.counts.behind += 1;
    } else this.counts.primary += 1;
    return this.options.primary.run(rows, answered);
  }

  /** On the primary, together with the question for its place: it goes out in the same write. */
  private placed<T>(rows: readonly Row[], finish: FreshFinish<T>): Promise<T> {
    return this.options.primary.run(rows, this.withPlace(finish), AFTER);
  }

  private withPlace<T>(finish: FreshFinish<T>): (replies: RespValue[]) => T {
    return (replies) => {
      const state = readReplication(replies.pop());
      this.history = state?.role === 'master' ? state.position.history : undefined;
      return finish(replies, state?.role === 'master' ? state.position : 'unknown');
    };
  }

  /** One replica after the other, of those that looked usable when they were last heard. */
  private pick(lane: Lane): Replica | undefined {
    // the primary is also who says whether the password, and with it a derived token, is still valid
    if (lane === 'scripts' || !this.options.primary.isOpen) return undefined;
    const { replicas } = this.options;
    for (let i = 0; i < replicas.length; i++) {
      const replica = replicas[this.turn++ % replicas.length]?.[lane];
      if (replica !== undefined && this.isUsable(replica.replication)) return replica;
    }
    return undefined;
  }

  private isUsable(state: Replication | undefined): boolean {
    return state?.role === 'slave' && state.linked && state.position.history === this.history;
  }

  private recheck(): void {
    const { primary, replicas } = this.options;
    primary
      .run([], ([reply]) => this.learn(reply), AFTER)
      .catch(() => {
        this.history = undefined;
      });
    for (const { main, bulk } of replicas) {
      main.recheck();
      bulk.recheck();
    }
  }

  private learn(reply: RespValue): void {
    const state = readReplication(reply);
    this.history = state?.role === 'master' ? state.position.history : undefined;
    // such as BUSY: it may tell the next time
    if (reply instanceof RespError && isPassing(reply)) return;
    if (this.history !== undefined || this.warned) return;
    this.warned = true;
    this.options.log.warn(
      'the server of url is no primary, or does not tell so (INFO): nothing is read from replicas',
    );
  }
}

function hasSeen(position: Position, wanted: 'any' | Position): boolean {
  return wanted === 'any' || (position.history === wanted.history && position.offset >= wanted.offset);
}

/** Scripts may be cached on the primary only, and a cursor goes on where it was given. */
function mayReadFromReplica({ rule }: Row): boolean {
  return rule.reads && rule.lane !== 'scripts' && !BOUND.test(rule.name);
}
