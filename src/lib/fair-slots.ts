import { availableParallelism } from 'node:os';
import { LIGHT_MS, LightWork } from './light-work.js';

/** Why a place was refused or the wait for it ended. */
export class NoSlot extends Error {
  constructor(
    /** `late` none came in time; `full` as many wait as may. */
    readonly reason: 'late' | 'full',
  ) {
    super(`no place (${reason})`);
    this.name = 'NoSlot';
  }
}

export interface FairSlotsOptions {
  /** How many may be in use at once. */
  readonly capacity: number;
  /** Longest wait for one, in ms. */
  readonly waitMs: number;
  /** Most waits of one tenant at once. */
  readonly maxWaiting: number;
  /** In ms. */
  readonly now?: () => number;
  /** Told of light work here, and asked whether some comes anywhere. Default: these places' own. */
  readonly light?: LightWork;
  /** Default: this machine's. */
  readonly processors?: number;
}

/** A lane may take another place while it holds less than so many times what is free: 7 of 9, and 1 stays for others. */
const LANE_SHARE = 3;
/** The same for all lanes of a tenant: what its slow lane leaves, its quick ones may use. */
const TENANT_SHARE = 6;

/** Work that costs more than this on average is heavy: its time, divided by how many of its kind went on beside it, in ms. */
const HEAVY_MS = 10;
/** Heavy work keeps to this part of the places while light work comes. */
const HEAVY_PART = 4;
/** What the latest duration counts in the average. */
const LATEST = 1 / 8;

interface Waiter {
  readonly grant: () => void;
  readonly giveUp: (error: unknown) => void;
}

interface Tenant {
  held: number;
  waiting: number;
}

/** One kind of work of one tenant. */
interface Lane {
  readonly tenant: Tenant;
  held: number;
  /** In the order of their coming. */
  readonly waiting: Set<Waiter>;
  /** When it was served last; the longest ago goes first among equals. */
  servedAt: number;
  /** Average of what its work costs, in ms. */
  cost: number;
}

/** Where one tenant's work of one kind enters. */
export interface LaneDoor {
  /** Takes a place at once. @returns whether there was one */
  tryEnter(): boolean;
  /** Resolves when the caller has a place. @throws NoSlot, or what `signal` aborts with */
  enter(signal?: AbortSignal): Promise<void>;
  /** Gives the place back. @param enteredAt when it was taken, on the slots' clock */
  leave(enteredAt: number): void;
  /** Does `work` in a place, for which it waits. @throws as `enter`, and what `work` throws */
  use<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/**
 * Places that several tenants share, such as connections. A place that becomes free goes to the tenant that holds the fewest, in it
 * to the kind of work that holds the fewest: quick work, which seldom holds any, goes before slow work. And nobody takes the last
 * ones: how many a lane may hold shrinks with what is free (dynamic thresholds; Choudhury and Hahne, 1998), so whoever comes
 * anew does not have to wait for the end of another's slow work. Where there are more places than processors, that is not enough:
 * heavy work holds no more than a quarter of the places, and fewer than there are processors, while light work comes, which is that of a lane that has little to do.
 */
export class FairSlots {
  private free: number;
  private served = 0;
  private readonly light: LightWork;
  readonly now: () => number;
  private readonly heavyPlaces: number;
  private again: NodeJS.Timeout | undefined;
  private readonly tenants = new Map<string, Tenant>();
  /** Those in which somebody waits. */
  private readonly waiting = new Set<Lane>();

  constructor(private readonly options: FairSlotsOptions) {
    this.free = options.capacity;
    this.now = options.now ?? (() => performance.now());
    this.light = options.light ?? new LightWork();
    // light work finds one that is free: two heavy ones on two of them made a query of 3 ms one of 35, one at a time 8
    const most = (options.processors ?? availableParallelism()) - 1;
    this.heavyPlaces = Math.max(1, Math.min(most, Math.floor(options.capacity / HEAVY_PART)));
  }

  /** A door stays for ever: tenants and kinds must be few. */
  lane(tenantName: string): LaneDoor {
    const tenant = this.tenants.get(tenantName) ?? { held: 0, waiting: 0 };
    this.tenants.set(tenantName, tenant);
    const lane: Lane = { tenant, held: 0, waiting: new Set(), servedAt: 0, cost: 0 };
    const door: LaneDoor = {
      tryEnter: () => {
        if (lane.waiting.size > 0 || !this.mayTake(lane)) return false;
        this.take(lane);
        return true;
      },
      enter: (signal) => this.wait(lane, signal),
      leave: (enteredAt) => {
        lane.cost += LATEST * ((this.now() - enteredAt) / lane.held - lane.cost);
        lane.held--;
        tenant.held--;
        this.free++;
        if (this.waiting.size > 0) this.serve();
      },
      use: async (work, signal) => {
        if (!door.tryEnter()) await door.enter(signal);
        const enteredAt = this.now();
        try {
          return await work();
        } finally {
          door.leave(enteredAt);
        }
      },
    };
    return door;
  }

  /** Tells all who wait that there is no use in it: in turn, each would find out for itself. */
  refuse(error: unknown): void {
    for (const lane of [...this.waiting]) for (const { giveUp } of [...lane.waiting]) giveUp(error);
  }

  private mayTake({ held, tenant, cost }: Lane): boolean {
    if (this.free === 0) return false;
    if (cost > HEAVY_MS && held >= this.heavyPlaces && this.light.comes(this.now())) return false;
    const laneMay = held === 0 || held < LANE_SHARE * this.free;
    return laneMay && (tenant.held === 0 || tenant.held < TENANT_SHARE * this.free);
  }

  private take(lane: Lane): void {
    this.free--;
    lane.held++;
    lane.tenant.held++;
    lane.servedAt = ++this.served;
    if (lane.held === 1 && lane.waiting.size === 0 && lane.cost <= HEAVY_MS) this.light.came(this.now());
  }

  private wait(lane: Lane, signal?: AbortSignal): Promise<void> {
    const { tenant } = lane;
    const { maxWaiting, waitMs } = this.options;
    if (tenant.waiting >= maxWaiting) return Promise.reject(new NoSlot('full'));
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        lane.waiting.delete(waiter);
        if (lane.waiting.size === 0) this.waiting.delete(lane);
        tenant.waiting--;
      };
      const giveUp = (error: unknown) => {
        end();
        reject(error);
      };
      const onAbort = () => giveUp(signal?.reason);
      const timer = setTimeout(() => giveUp(new NoSlot('late')), waitMs);
      const waiter: Waiter = {
        giveUp,
        grant: () => {
          end();
          this.take(lane);
          resolve();
        },
      };
      tenant.waiting++;
      lane.waiting.add(waiter);
      this.waiting.add(lane);
      if (signal?.aborted) onAbort();
      else signal?.addEventListener('abort', onAbort);
      this.lookAgain();
    });
  }

  /** Heavy work that waits beside free places may have them when light work no longer comes, which nobody tells. */
  private lookAgain(): void {
    if (this.again !== undefined || this.free === 0 || this.waiting.size === 0) return;
    const look = () => {
      this.again = undefined;
      this.serve();
      this.lookAgain();
    };
    this.again = setTimeout(look, LIGHT_MS).unref();
  }

  /** Gives what is free to those who wait, as far as they may have it. */
  private serve(): void {
    for (let next = this.next(); next !== undefined; next = this.next()) {
      const [first] = next.waiting;
      first?.grant();
    }
  }

  private next(): Lane | undefined {
    let best: Lane | undefined;
    for (const lane of this.waiting) {
      if (this.mayTake(lane) && (best === undefined || isBefore(lane, best))) best = lane;
    }
    return best;
  }
}

function isBefore(a: Lane, b: Lane): boolean {
  return (a.tenant.held - b.tenant.held || a.held - b.held || a.servedAt - b.servedAt) < 0;
}
