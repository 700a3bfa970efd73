import { Circuit, type CircuitOptions, type CircuitState } from './circuit.js';

/** Destinations that are remembered while nothing goes to them. */
const MOST_REMEMBERED = 10_000;
/** A destination is silent when no answer has come for so long, in ms, and for so many times its usual answer's. */
const SILENT_MS = 1_000;
const SILENT_LATENCIES = 3;
/** How much of the usual time to an answer the newest one makes. */
const NEWEST_WEIGHT = 0.2;

/** Attempts under way that count together. */
export interface Share {
  readonly name: string;
  active: number;
  waiting: number;
}

export const newShare = (name: string): Share => ({ name, active: 0, waiting: 0 });

/** Who waits for a place at a destination whose attempts end quickly. */
export interface Waiter<V, E> {
  readonly request: V;
  readonly answer: (entry: E) => void;
}

/** A message that was turned away. */
interface Away {
  readonly attempt: number;
  /** When it comes again by itself, on the caller's clock. */
  readonly at: number;
}

/** What is known of a destination (scheme, host and port). Times are those of the caller's clock. */
export class Destination<W = unknown> implements Share {
  active = 0;
  waiting = 0;
  /** Whether the last attempt waited or had no answer; `undefined` before the first has ended. */
  slow: boolean | undefined;
  /** When an attempt last ended. */
  movedAt = Number.NEGATIVE_INFINITY;
  turnedAway = 0;
  /** When the last message that was turned away comes again. */
  returnAt = Number.NEGATIVE_INFINITY;
  readonly circuit: Circuit;
  readonly queue: W[] = [];
  /** Messages that were turned away for long, by id. */
  readonly away = new Map<string, Away>();
  /** Usual time to an answer, in ms; `undefined` before the first. */
  private latency: number | undefined;
  /** When the last answer came, or later the first attempt began of those that are under way. */
  private heardAt = Number.NEGATIVE_INFINITY;

  constructor(
    readonly name: string,
    options: CircuitOptions,
  ) {
    this.circuit = new Circuit(options);
  }

  get under(): number {
    return this.active + this.waiting;
  }

  /** It may hang: it did lately, or has never answered. */
  get isSuspect(): boolean {
    return this.slow !== false || this.waiting > 0;
  }

  /** How long it takes until one of its attempts is answered, in ms; 0 before the first. */
  get answersEveryMs(): number {
    return (this.latency ?? 0) / Math.max(1, this.under);
  }

  isSilent(now: number): boolean {
    if (this.latency === undefined) return true;
    return now - this.heardAt > Math.max(SILENT_MS, SILENT_LATENCIES * this.latency);
  }

  begins(now: number): void {
    if (this.under === 0) this.heardAt = now;
    this.active += 1;
  }

  /** @param waited it had given its active place back, or might have */
  ends(answered: boolean, tookMs: number, waited: boolean, now: number): void {
    this.movedAt = now;
    this.slow = waited || !answered;
    if (!answered) return;
    const { latency = tookMs } = this;
    this.latency = latency + (tookMs - latency) * NEWEST_WEIGHT;
    this.heardAt = now;
    this.turnedAway = 0;
  }
}

/** What the API shows of a destination. Times are milliseconds from now, negative ones ago. */
export interface DestinationView {
  readonly destination: string;
  readonly circuit: CircuitState;
  /** Attempts in a row that waited in vain. */
  readonly failures: number;
  readonly active: number;
  readonly waiting: number;
  /** Turned away since the destination last answered. */
  readonly turnedAway: number;
  readonly openedInMs: number | undefined;
  readonly probeInMs: number | undefined;
}

/** Destinations by name, a bounded number of them. */
export class KnownDestinations<W> {
  private readonly destinations = new Map<string, Destination<W>>();

  constructor(
    private readonly circuit: CircuitOptions,
    private readonly onForgotten: (destination: Destination<W>) => void,
  ) {}

  at(name: string): Destination<W> {
    const known = this.destinations.get(name);
    if (known !== undefined) return known;
    if (this.destinations.size >= MOST_REMEMBERED) this.forgetOne();
    const destination = new Destination<W>(name, this.circuit);
    this.destinations.set(name, destination);
    return destination;
  }

  /** Those with attempts under way or a circuit that is not closed, at most `most`. */
  list(most: number, now: number): DestinationView[] {
    const views: DestinationView[] = [];
    for (const destination of this.destinations.values()) {
      const { name, circuit, active, waiting, turnedAway } = destination;
      if (destination.under === 0 && circuit.state === 'closed') continue;
      if (views.length === most) break;
      const { state, failures, openSince } = circuit;
      views.push({
        destination: name,
        circuit: state,
        failures,
        active,
        waiting,
        turnedAway,
        openedInMs: openSince === undefined ? undefined : openSince - now,
        probeInMs: openSince === undefined ? undefined : Math.max(0, circuit.nextProbeAt - now),
      });
    }
    return views;
  }

  /** Of the ones that are idle the one that has been known longest; an open circuit does not save it. */
  private forgetOne(): void {
    let looks = 0;
    for (const [name, destination] of this.destinations) {
      if (++looks > 16) return;
      this.destinations.delete(name);
      if (destination.under + destination.queue.length === 0) {
        this.onForgotten(destination);
        return;
      }
      this.destinations.set(name, destination);
    }
  }
}
