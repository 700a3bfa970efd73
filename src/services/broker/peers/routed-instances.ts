import { HttpError } from '../../../http/errors.js';
import { deadlineOf } from '../../../lib/deadline.js';
import type { ClusterCounters } from '../cluster-counters.js';
import type { Consumed } from '../group/consumer-instance.js';
import type { ConsumerInstances } from '../group/consumer-instances.js';
import type { CommitRequest } from '../group/group-offsets.js';
import { groupsOf, type InstanceName, type InstanceState, type Wait } from '../group/instance-state.js';
import { NO_MESSAGES } from '../records/messages-json.js';
import type { ConsumeWishes, GroupAssignments } from '../schemas.js';
import { PeerBrokeOff, type PeerClient, PeerUnreachable } from './peer-client.js';
import type { Hop, ListReply, PeerMessage, PeerRequest } from './peer-protocol.js';
import type { Peer, Peers } from './peers.js';

/** One round of gateways among which instances are dealt out. */
export interface PeerRound {
  readonly hop: Hop;
  readonly peers: Peers;
}

export interface RoutedInstancesOptions {
  readonly cluster: string;
  readonly local: ConsumerInstances;
  readonly client: PeerClient | undefined;
  /** Machines first, then the workers of this one; none where there is one process only. */
  readonly rounds: readonly PeerRound[];
  readonly counters: ClusterCounters;
  /** Resolves when it is known who else is there. */
  readonly whenReady: () => Promise<void>;
  /** This gateway stops, and makes no instances any more. */
  readonly isLeaving: () => boolean;
}

/** Owners that are tried before a request is given up: each that is dead is left out from then on. */
const TRIES = 4;
/** A gateway that does not tell by then what it has is left out, in ms. */
const LIST_MS = 2_000;
/** An instance that another gateway closes is waited for so long: its last commit and reply, in ms. */
const YIELD_MS = 5_000;
const HOPS: readonly Hop[] = ['machine', 'worker'];

/** Consumer instances of all gateways together: each lives in one, which every other one asks. */
export class RoutedInstances {
  constructor(private readonly options: RoutedInstancesOptions) {}

  /** As `ConsumerInstances.consume`. @param after the round that the request has behind it */
  consume(
    name: InstanceName,
    topics: readonly string[],
    wishes: ConsumeWishes,
    wait: Wait,
    after?: Hop,
  ): Promise<Consumed> {
    const { local } = this.options;
    const end = performance.now() + wait.ms;
    return this.atOwner(
      name,
      after,
      () => local.consume(name, topics, wishes, wait, () => this.yieldElsewhere(name, wait.gone, after)),
      async (peer, hop) => {
        // from the second owner on there is less time left
        const waitMs = Math.max(0, Math.round(end - performance.now()));
        const message = this.message(hop, { operation: 'consume', name, topics, headers: wishes, waitMs });
        return this.consumeAt(peer, message, waitMs, wait.gone);
      },
    );
  }

  commit(
    name: InstanceName,
    { positions, acknowledged }: CommitRequest,
    signal: AbortSignal,
    after?: Hop,
  ): Promise<void> {
    const { local } = this.options;
    const request = { operation: 'commit', name, positions, acknowledged } as const;
    return this.atOwner(
      name,
      after,
      () => local.commit(name, request, signal),
      async (peer, hop) => void (await this.ask(peer, hop, request, signal)),
    );
  }

  remove(name: InstanceName, signal: AbortSignal, after?: Hop): Promise<void> {
    const { local } = this.options;
    return this.atOwner(
      name,
      after,
      () => local.remove(name),
      async (peer, hop) => void (await this.ask(peer, hop, { operation: 'remove', name }, signal)),
    );
  }

  /** As `ConsumerInstances.takeBack`. */
  takeBack(name: InstanceName, delivery: string, signal: AbortSignal, after?: Hop): Promise<void> {
    return this.atOwner(
      name,
      after,
      async () => this.options.local.takeBack(name, delivery),
      async (peer, hop) =>
        void (await this.ask(peer, hop, { operation: 'takeBack', name, delivery }, signal)),
    );
  }

  /** Gives an instance up to the gateway that asks, with all that was delivered committed; in the rounds that are left, elsewhere too. */
  async yield(name: InstanceName, signal: AbortSignal, after?: Hop): Promise<void> {
    await Promise.all([this.options.local.yield(name), this.yieldElsewhere(name, signal, after)]);
  }

  /** Of every gateway that answers. @param nameOf what the user calls a group; `undefined` where it is not the user's */
  async list(nameOf: (group: string) => string | undefined, signal: AbortSignal): Promise<GroupAssignments> {
    return groupsOf(await this.states(signal), nameOf);
  }

  /** Instances here and, in the rounds that are left, elsewhere. */
  async states(signal: AbortSignal, after?: Hop): Promise<InstanceState[]> {
    const found = await this.askOthers({ operation: 'list' }, LIST_MS, signal, after);
    const elsewhere = (found as (ListReply | undefined)[]).flatMap((reply) => reply ?? []);
    return [...this.options.local.states(), ...elsewhere];
  }

  /** Whether an instance of that name belongs here. */
  isOwn(name: InstanceName): boolean {
    return this.options.rounds.every(({ peers }) => peers.ownerOf(this.keyOf(name)) === undefined);
  }

  private async atOwner<T>(
    name: InstanceName,
    after: Hop | undefined,
    here: () => Promise<T>,
    there: (peer: Peer, hop: Hop) => Promise<T>,
  ): Promise<T> {
    await this.options.whenReady();
    for (let tries = 1; tries <= TRIES; tries++) {
      const found = this.ownerOf(name, after);
      if (found === undefined) {
        if (this.options.isLeaving()) throw new HttpError('stopping');
        return here();
      }
      this.options.counters.forwarded += 1;
      try {
        return await there(found.peer, found.hop);
      } catch (error) {
        if (error instanceof PeerUnreachable) found.peers.lost(found.peer);
        else if (error instanceof HttpError && error.code === 'stopping') found.peers.leaving(found.peer);
        else throw error;
      }
    }
    throw new HttpError('backend_unavailable', 'The gateways that may have this instance cannot be reached.');
  }

  private ownerOf(name: InstanceName, after: Hop | undefined): (PeerRound & { peer: Peer }) | undefined {
    for (const round of this.roundsAfter(after)) {
      const peer = round.peers.ownerOf(this.keyOf(name));
      if (peer !== undefined) return { ...round, peer };
    }
    return undefined;
  }

  private roundsAfter(after: Hop | undefined): readonly PeerRound[] {
    const behind = after === undefined ? -1 : HOPS.indexOf(after);
    return this.options.rounds.filter(({ hop }) => HOPS.indexOf(hop) > behind);
  }

  private keyOf({ group, instance }: InstanceName): string {
    return JSON.stringify([this.options.cluster, group, instance]);
  }

  /** Nobody else has it any more, as far as they answer: who makes it goes on where they committed. */
  private yieldElsewhere(name: InstanceName, signal: AbortSignal, after?: Hop): Promise<unknown> {
    return this.askOthers({ operation: 'yield', name }, YIELD_MS, signal, after);
  }

  /** Answers of all others in the rounds that are left; `undefined` of those that do not. */
  private async askOthers(
    request: PeerRequest,
    ms: number,
    signal: AbortSignal,
    after: Hop | undefined,
  ): Promise<unknown[]> {
    const soon = deadlineOf(ms, signal);
    const answers = this.roundsAfter(after).flatMap(({ hop, peers }) =>
      peers.others.map(async (peer) => {
        const until = deadlineOf(undefined, soon.signal, peer.lost);
        const answer = this.ask(peer, hop, request, until.signal);
        return answer.catch(() => undefined).finally(() => until.release());
      }),
    );
    return Promise.all(answers).finally(() => soon.release());
  }

  private async consumeAt(
    peer: Peer,
    message: PeerMessage,
    waitMs: number,
    gone: AbortSignal,
  ): Promise<Consumed> {
    const until = deadlineOf(undefined, gone, peer.lost);
    try {
      return await (this.options.client as PeerClient).consume(peer.place, message, waitMs, until.signal);
    } catch (error) {
      // what the owner had taken it hands out again, or whoever has the instance after it
      if (!gone.aborted)
        throw error instanceof PeerBrokeOff ? new PeerUnreachable(error.message, { cause: error }) : error;
      return { messages: NO_MESSAGES, count: 0, isJoined: false, settle: () => {} };
    } finally {
      until.release();
    }
  }

  private ask(peer: Peer, hop: Hop, request: PeerRequest, signal: AbortSignal): Promise<unknown> {
    return (this.options.client as PeerClient).ask(peer.place, this.message(hop, request), signal);
  }

  private message(hop: Hop, request: PeerRequest): PeerMessage {
    return { cluster: this.options.cluster, hop, request };
  }
}
