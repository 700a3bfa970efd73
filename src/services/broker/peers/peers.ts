import { lookup } from 'node:dns/promises';
import { setMaxListeners } from 'node:events';
import { parseAddress } from '../../../lib/address.js';
import type { Logger } from '../../../lib/logger.js';
import type { PeerClient } from './peer-client.js';
import type { Pong } from './peer-protocol.js';
import type { PeerPlace } from './peer-server.js';
import { byWeight } from './rendezvous.js';

/** How often the others are asked whether they live, in ms. */
const PING_MS = 1_000;
/** One that has not answered for so long counts as dead, in ms. */
const SILENCE_MS = 2_500;

export interface Peer {
  readonly id: string;
  readonly place: PeerPlace;
  /** Aborts when it counts as dead: whoever waits for its answer need not wait any more. */
  readonly lost: AbortSignal;
}

interface Known extends Peer {
  readonly at: number;
  readonly pong: Pong;
  readonly gone: AbortController;
}

export interface PeersOptions {
  /** This gateway's own. */
  readonly id: string;
  /** Where others, and perhaps this one itself, may be found. */
  readonly places: () => Promise<readonly PeerPlace[]>;
  readonly client: PeerClient;
  /** Called when somebody came or went. */
  readonly onChange: () => void;
  readonly log: Logger;
  readonly now: () => number;
}

/** Which gateways live, and which of them owns what. */
export class Peers {
  private readonly known = new Map<string, Known>();
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> | undefined;
  private stopped = false;
  private isLeaving = false;

  constructor(private readonly options: PeersOptions) {}

  /** Resolves when everybody has been asked once. */
  async start(): Promise<void> {
    await this.look();
    this.timer = setInterval(() => void this.look(), PING_MS);
    this.timer.unref();
  }

  /** This gateway stops: it has nothing any more as long as there are others. */
  leave(): void {
    this.isLeaving = true;
  }

  stop(): void {
    this.stopped = true;
    clearInterval(this.timer);
  }

  /** The others that live, those that stop among them. */
  get others(): Peer[] {
    return [...this.known.values()];
  }

  /** Who is to have `key`; `undefined` for this gateway itself. */
  ownerOf(key: string): Peer | undefined {
    const staying = this.others.filter(({ id }) => this.known.get(id)?.pong.isLeaving === false);
    const isSelf = !this.isLeaving || staying.length === 0;
    const candidates = [...(isSelf ? [this.options.id] : []), ...staying.map(({ id }) => id)];
    const [owner] = byWeight(candidates, key);
    return owner === undefined ? undefined : this.known.get(owner);
  }

  /** It could not be reached: dead until it answers again. */
  lost({ id }: Peer): void {
    this.known.get(id)?.gone.abort();
    if (!this.known.delete(id)) return;
    this.options.log.warn({ peer: id }, 'peer lost');
    this.options.onChange();
  }

  /** It stops, and has said so. */
  leaving({ id }: Peer): void {
    const known = this.known.get(id);
    if (known === undefined) return;
    this.known.set(id, { ...known, pong: { ...known.pong, isLeaving: true } });
  }

  /** One that is not known has asked whether this one lives. */
  met(id: string): void {
    if (!this.known.has(id) && id !== this.options.id && !this.stopped) void this.look();
  }

  /** Consumer instances that the others have, by owner. */
  instancesElsewhere(cluster: string): Record<string, number> {
    return summed([...this.known.values()].map(({ pong }) => pong.instances[cluster] ?? {}));
  }

  private look(): Promise<void> {
    this.looking ??= this.lookOnce().finally(() => {
      this.looking = undefined;
    });
    return this.looking;
  }

  private async lookOnce(): Promise<void> {
    const { places, client, log } = this.options;
    const found = await places().catch((err: unknown) => {
      log.warn({ err }, 'peers cannot be looked up');
      return this.others.map(({ place }) => place);
    });
    await Promise.all(
      found.map((place) =>
        client.ping(place, this.options.id).then(
          (pong) => this.heard(place, pong),
          (err: unknown) => log.debug({ err, place }, 'peer does not answer'),
        ),
      ),
    );
    const oldest = this.options.now() - SILENCE_MS;
    for (const peer of [...this.known.values()]) if (peer.at < oldest) this.lost(peer);
  }

  private heard(place: PeerPlace, pong: Pong): void {
    const { id, now, log, onChange } = this.options;
    if (pong.id === id || this.stopped) return;
    const before = this.known.get(pong.id);
    const gone = before?.gone ?? new AbortController();
    if (before === undefined) setMaxListeners(0, gone.signal);
    this.known.set(pong.id, { id: pong.id, place, at: now(), pong, gone, lost: gone.signal });
    if (before !== undefined) return;
    log.info({ peer: pong.id }, 'peer found');
    onChange();
  }
}

/** Configured addresses, and every address of a name. */
export function placesOf(addresses: readonly string[], dns: string | null): () => Promise<PeerPlace[]> {
  const fixed = addresses.map(parseAddress);
  if (dns === null) return async () => fixed;
  const { host, port } = parseAddress(dns);
  return async () => [
    ...fixed,
    ...(await lookup(host, { all: true })).map(({ address }) => ({ host: address, port })),
  ];
}

/** Of each key, the sum of all counts. */
export function summed(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const one of counts)
    for (const [key, count] of Object.entries(one)) sums[key] = (sums[key] ?? 0) + count;
  return sums;
}
