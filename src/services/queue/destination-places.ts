/** A place at a destination that still answers is worth waiting for so long, in ms: its queue moves. */
const WAIT_MS = 250;
/** A message that found no place comes again after this, in ms, and later the more of them there are. */
const SHORTEST_AWAY_MS = 250;
const AWAY_PER_MESSAGE_MS = 10;
const LONGEST_AWAY_MS = 30_000;

/** A place was had: `leave` gives it back. Otherwise the message is to stay away for `awayMs`. */
export type Entry = { readonly leave: () => void } | { readonly awayMs: number };

export interface DestinationPlacesOptions {
  /** Deliveries to one destination at once. */
  readonly most: number;
  /** Messages that may wait for a place at one destination; they take places of the dispatcher meanwhile. */
  readonly mostWaiting: number;
  /** Milliseconds on any clock. */
  readonly now: () => number;
}

interface Destination {
  inFlight: number;
  /** When an attempt last ended. */
  movedAt: number;
  /** Messages without a place since the last one that got one. */
  turnedAway: number;
  readonly waiting: ((leave: () => void) => void)[];
}

/** Deliveries under way by destination (host and port): one that hangs leaves places to the others. */
export class DestinationPlaces {
  private readonly destinations = new Map<string, Destination>();

  constructor(private readonly options: DestinationPlacesOptions) {}

  async enter(url: string): Promise<Entry> {
    const key = new URL(url).host;
    const destination = this.destinations.get(key) ?? this.first(key);
    if (destination.inFlight < this.options.most) {
      destination.inFlight += 1;
      return { leave: this.placeAt(key, destination) };
    }
    const leave = await this.waitAt(destination);
    if (leave !== undefined) return { leave };
    destination.turnedAway += 1;
    const awayMs = Math.max(SHORTEST_AWAY_MS, destination.turnedAway * AWAY_PER_MESSAGE_MS);
    return { awayMs: Math.min(LONGEST_AWAY_MS, awayMs) };
  }

  private first(key: string): Destination {
    const destination: Destination = {
      inFlight: 0,
      movedAt: Number.NEGATIVE_INFINITY,
      turnedAway: 0,
      waiting: [],
    };
    this.destinations.set(key, destination);
    return destination;
  }

  private placeAt(key: string, destination: Destination): () => void {
    destination.turnedAway = 0;
    return () => {
      destination.movedAt = this.options.now();
      const next = destination.waiting.shift();
      if (next !== undefined) return next(this.placeAt(key, destination));
      destination.inFlight -= 1;
      if (destination.inFlight === 0) this.destinations.delete(key);
    };
  }

  private waitAt({ movedAt, waiting }: Destination): Promise<(() => void) | undefined> {
    const { mostWaiting, now } = this.options;
    if (waiting.length >= mostWaiting || now() - movedAt > WAIT_MS) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const begin = (leave: () => void) => {
        clearTimeout(timer);
        resolve(leave);
      };
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(begin), 1);
        resolve(undefined);
      }, WAIT_MS);
      waiting.push(begin);
    });
  }
}
