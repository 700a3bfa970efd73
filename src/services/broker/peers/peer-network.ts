import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { HttpError } from '../../../http/errors.js';
import { parseAddress } from '../../../lib/address.js';
import { keepTrying } from '../../../lib/keep-trying.js';
import { endedWithin } from '../../../lib/within.js';
import type { ServiceRuntime, Worker } from '../../service.js';
import type { ClusterCounters } from '../cluster-counters.js';
import type { ConsumerInstances } from '../group/consumer-instances.js';
import type { PeerSettings } from '../settings.js';
import { PeerClient } from './peer-client.js';
import type { Hop, PeerMessage, Pong } from './peer-protocol.js';
import { type PeerPlace, PeerServer, type PeerService } from './peer-server.js';
import { Peers, placesOf, summed } from './peers.js';
import { type PeerRound, RoutedInstances } from './routed-instances.js';

/** So long a request waits, in ms, for the first look at who else is there. */
const FIRST_LOOK_MS = 2_000;
const STOP_MS = 5_000;

interface Member {
  readonly local: ConsumerInstances;
  readonly instances: RoutedInstances;
}

/** Where a round of gateways reaches this process, and this process the others. */
interface Entrance {
  readonly hop: Hop;
  /** This process' name in the round. */
  readonly id: string;
  readonly place: PeerPlace;
  readonly places: () => Promise<readonly PeerPlace[]>;
  readonly secret: string;
}

function entrancesOf(settings: PeerSettings, worker: Worker | undefined, secret: string): Entrance[] {
  const entrances: Entrance[] = [];
  const { listen, addresses, dns } = settings;
  if (listen !== null) {
    const id = worker?.machine ?? randomUUID();
    entrances.push({
      hop: 'machine',
      id,
      place: parseAddress(listen),
      places: placesOf(addresses, dns),
      secret,
    });
  }
  if (worker !== undefined) {
    const socketOf = (index: number) => ({ path: join(worker.folder, `broker-${index}.sock`) });
    const sockets = Array.from({ length: worker.count }, (_, index) => socketOf(index));
    const places = async () => sockets;
    entrances.push({ hop: 'worker', id: randomUUID(), place: socketOf(worker.index), places, secret });
  }
  return entrances;
}

/** This process among the gateways: other machines, and other workers of this machine. */
export class PeerNetwork {
  readonly rounds: readonly PeerRound[];
  readonly client: PeerClient | undefined;
  private readonly entrances: readonly Entrance[];
  private readonly members = new Map<string, Member>();
  private listening: readonly { readonly done: boolean }[] = [];
  private ready: Promise<void> = Promise.resolve();
  private isReady = false;
  private isLeaving = false;
  private servers: readonly PeerServer[] = [];

  constructor(
    settings: PeerSettings,
    private readonly runtime: ServiceRuntime,
  ) {
    const { worker } = runtime;
    const secret = settings.secret ?? worker?.secret;
    this.client = secret === undefined ? undefined : new PeerClient(secret);
    this.entrances = secret === undefined ? [] : entrancesOf(settings, worker, secret);
    // after the instances' own release
    runtime.lifecycle.onStop('peers', () => this.close(), STOP_MS);
    const { client } = this;
    this.rounds =
      client === undefined
        ? []
        : this.entrances.map(({ hop, id, places }) => {
            const { log, now } = runtime;
            return {
              hop,
              peers: new Peers({ id, places, client, log, now, onChange: () => this.releaseAll() }),
            };
          });
  }

  /** Once every cluster is there. At a stop, this gateway first leaves, then closes its instances, then is silent. */
  start(): void {
    const { log, lifecycle } = this.runtime;
    lifecycle.onStop('leave peers', () => this.leave());
    this.servers = this.entrances.map(
      ({ hop, id, secret }, i) => new PeerServer(secret, this.serviceOf(hop, id, i), log),
    );
    this.listening = this.entrances.map(({ hop, place }, i) =>
      keepTrying(async () => this.servers[i]?.listen(place), {
        name: `broker peers (${hop})`,
        log,
        lifecycle,
      }),
    );
    this.ready = Promise.all(this.rounds.map(({ peers }) => peers.start())).then(() => {
      this.isReady = true;
    });
  }

  private leave(): void {
    this.isLeaving = true;
    for (const { peers } of this.rounds) peers.leave();
    for (const server of this.servers) server.leave();
  }

  private async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.close()));
    for (const { peers } of this.rounds) peers.stop();
    this.client?.close();
  }

  /** @throws HttpError 503 while the others cannot reach this gateway */
  check(): void {
    if (this.listening.some(({ done }) => !done))
      throw new HttpError('backend_unavailable', 'the peer port cannot be had');
  }

  /** One cluster's instances, from now on together with those of the other processes. */
  join(cluster: string, local: ConsumerInstances, counters: ClusterCounters): RoutedInstances {
    const { client, rounds } = this;
    const whenReady = () => this.whenReady();
    const isLeaving = () => this.isLeaving;
    const instances = new RoutedInstances({ cluster, local, client, rounds, counters, whenReady, isLeaving });
    this.members.set(cluster, { local, instances });
    return instances;
  }

  /** Resolves when it is known who else is there. */
  async whenReady(): Promise<void> {
    if (this.isReady) return;
    await endedWithin(FIRST_LOOK_MS, this.ready);
  }

  /** Consumer instances that other processes have of an owner's. */
  instancesElsewhere(cluster: string, owner: string): number {
    return this.rounds.reduce((sum, { peers }) => sum + (peers.instancesElsewhere(cluster)[owner] ?? 0), 0);
  }

  private serviceOf(hop: Hop, id: string, round: number): PeerService {
    const of = ({ cluster }: PeerMessage): RoutedInstances => {
      const member = this.members.get(cluster);
      if (member === undefined) throw new HttpError('not_found', `This gateway has no cluster ${cluster}.`);
      return member.instances;
    };
    return {
      pong: () => ({
        id,
        instances: this.counts(hop),
        isLeaving: this.isLeaving && !this.hasOtherWorkers(hop),
      }),
      met: (other) => this.rounds[round]?.peers.met(other),
      consume: async (message: PeerMessage, end: AbortSignal) => {
        const { request } = message;
        if (request.operation !== 'consume') throw new HttpError('invalid_request');
        const { name, topics, headers, waitMs } = request;
        return of(message).consume(
          name,
          topics,
          headers,
          { ms: waitMs, signal: end, gone: end },
          message.hop,
        );
      },
      commit: async (message: PeerMessage, end: AbortSignal) => {
        const { request } = message;
        if (request.operation !== 'commit') throw new HttpError('invalid_request');
        await of(message).commit(request.name, request, end, message.hop);
      },
      remove: async (message: PeerMessage, end: AbortSignal) => {
        const { request } = message;
        if (request.operation !== 'remove') throw new HttpError('invalid_request');
        await of(message).remove(request.name, end, message.hop);
      },
      yield: async (message: PeerMessage, end: AbortSignal) => {
        const { request } = message;
        if (request.operation !== 'yield') throw new HttpError('invalid_request');
        await of(message).yield(request.name, end, message.hop);
      },
      takeBack: async (message: PeerMessage, end: AbortSignal) => {
        const { request } = message;
        if (request.operation !== 'takeBack') throw new HttpError('invalid_request');
        await of(message).takeBack(request.name, request.delivery, end, message.hop);
      },
      list: async (message: PeerMessage, end: AbortSignal) => of(message).states(end, message.hop),
    };
  }

  /** A machine goes on when one of its workers stops. */
  private hasOtherWorkers(hop: Hop): boolean {
    return hop === 'machine' && this.rounds.length > 1;
  }

  /** A machine's are those of all its workers. */
  private counts(hop: Hop): Pong['instances'] {
    const workers = hop === 'machine' ? this.rounds.find((round) => round.hop === 'worker') : undefined;
    return Object.fromEntries(
      [...this.members].map(([cluster, { local }]) => [
        cluster,
        summed([local.countsByOwner(), workers?.peers.instancesElsewhere(cluster) ?? {}]),
      ]),
    );
  }

  private releaseAll(): void {
    // those that belong to another process by now
    for (const { local, instances } of this.members.values()) local.release((name) => instances.isOwn(name));
  }
}
