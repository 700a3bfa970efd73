import type { Principal, RouteContext } from '../../../http/route.js';
import type { Row } from '../commands/commands.js';
import { tooManyWait, waitedTooLong } from '../errors.js';
import { RespError } from '../resp/resp-decoder.js';
import type { ScriptKiller } from './script-killer.js';

/** More commands or arguments than these in one request may be work that others notice. */
const [MANY_ROWS, MANY_ARGUMENTS] = [4, 64] as const;
/** While so many replies are due, nobody knows how large they are. */
const MANY_PENDING = 256;
/** A token that had a reply of so many bytes asks for such ones, until so many of its replies were smaller. */
const [LARGE_REPLY, SMALL_REPLIES] = [64 * 1024, 32] as const;

/** Commands that never take long, unless there are many or they get much. */
function areQuick(rows: readonly (Row | RespError)[]): boolean {
  for (const row of rows) if (!(row instanceof RespError) && row.rule.lane !== 'main') return false;
  return true;
}

function areMany(rows: readonly Row[]): boolean {
  if (rows.length > MANY_ROWS) return true;
  for (const { command } of rows) if (command.length > MANY_ARGUMENTS) return true;
  return false;
}

const tokenOf = ({ key, name }: Principal) => key ?? name;

const [LEAST, FIRST, MOST] = [2, 8, 1_024] as const;
/** What a request may wait for others in Redis, in ms, and in parts of what it takes alone: far ones vary by more. */
const [WAIT_MS, WAIT_PART] = [5, 0.5] as const;
const [LESS, MORE] = [0.8, 1] as const;
/** So long the shortest time counts as what one takes alone, in ms. */
const EPOCH_MS = 10_000;
/** Requests of one token that wait. */
const MAX_WAITING = 1_000;
/** How much of a request's deadline it may wait before it is sent. */
const WAITING_SHARE = 0.5;

/**
 * What all that are inside may take of this process' memory together, in bytes, and what a token's next is taken for whose last
 * ones are not known. Eight LRANGE of 200,000 elements at once took 380 MiB: each element is an object until it is text.
 */
const [AT_WORK_BYTES, UNKNOWN_BYTES] = [64 * 1024 * 1024, 16 * 1024 * 1024] as const;
/** What takes less is not counted. */
const LITTLE_BYTES = 1024 * 1024;
/** A reply's memory for each byte of its JSON, where it was made in slices, and where at once; and for each element that is none yet. */
const [LARGE_TIMES, SMALL_TIMES, ELEMENT_BYTES] = [8, 4, 170] as const;
/** What counts of the largest reply, each time that another was smaller. */
const FORGETTING = 0.75;
/** Tokens whose replies are remembered; users of Redis' own come and go. */
const MOST_TOKENS = 1_000;

interface Waiter {
  readonly token: string;
  readonly begin: (bytes: number) => void;
}

/** What a result took in memory while it was made. */
function memoryOf(result: unknown): number {
  if (Array.isArray(result)) {
    let elements = 0;
    for (const reply of result) elements += Array.isArray(reply) ? reply.length : 1;
    return elements * ELEMENT_BYTES;
  }
  const { body = '' } = result as { body?: string | Buffer };
  return body.length * (typeof body === 'string' ? SMALL_TIMES : LARGE_TIMES);
}

/**
 * Lets no more weighty requests into Redis at once than it works off while the next is on its way. Redis carries out all
 * commands that one connection has sent before it looks at another: 2,000 LRANGE at once kept it from everybody for half a
 * minute and in memory for 3 GB of replies. How many that are is found out from how much longer requests take beside others than alone
 * (additive increase, multiplicative decrease). Of several tokens each has its turn.
 */
export class Admission {
  /** Tokens that ask for large replies by quick commands, with how many smaller ones change that. */
  private readonly large = new Map<string, number>();
  private window: number = FIRST;
  private inside = 0;
  /** By token, what its replies took lately, in bytes. */
  private readonly memory = new Map<string, number>();
  private atWork = 0;
  /** By token, quick commands apart from others; those whose turn is next first. */
  private readonly waiting = new Map<string, Waiter[]>();
  private quickest = Number.POSITIVE_INFINITY;
  private quickestBefore = Number.POSITIVE_INFINITY;
  private epoch = 0;

  /**
   * @param timeoutMs deadline of a request, which begins when it is sent
   * @param pending how many requests' replies are due
   * @param killer ends scripts that have no end; `undefined`: they are left alone
   * @param now in ms
   */
  constructor(
    private readonly timeoutMs: number,
    private readonly pending: () => number,
    private readonly killer?: ScriptKiller,
    private readonly now = () => performance.now(),
  ) {}

  /** Whether a request may take Redis, or this process with its reply, a millisecond and more. */
  isWeighty(rows: readonly Row[], principal: Principal): boolean {
    if (this.large.size > 0 && this.large.has(tokenOf(principal))) return true;
    return !areQuick(rows) || areMany(rows) || this.pending() > MANY_PENDING;
  }

  /** Told of each reply. @param bytes or characters */
  sawReply(rows: readonly (Row | RespError)[], principal: Principal, bytes: number): void {
    if (bytes >= LARGE_REPLY) {
      if (areQuick(rows)) this.large.set(tokenOf(principal), SMALL_REPLIES);
    } else if (this.large.size > 0) {
      const token = tokenOf(principal);
      const left = this.large.get(token);
      if (left === 1) this.large.delete(token);
      else if (left !== undefined) this.large.set(token, left - 1);
    }
  }

  /**
   * Does `work`, which sends `rows`; those that are weighty wait for their turn.
   * @throws HttpError 503 when that does not come; what `work` throws, or `context.signal` aborts with
   */
  use<T>(rows: readonly Row[], context: RouteContext, work: () => Promise<T>): Promise<T> {
    return this.isWeighty(rows, context.principal) ? this.inTurn(rows, context, work) : work();
  }

  /** The same for what is known to be weighty. */
  async inTurn<T>(rows: readonly Row[], context: RouteContext, work: () => Promise<T>): Promise<T> {
    const token = tokenOf(context.principal);
    let bytes = this.expected(token);
    if ((bytes > 0 && this.waiting.size > 0) || !this.hasRoom(bytes)) {
      bytes = await this.turn(rows, context);
      context.limitTo(this.timeoutMs);
    } else {
      this.enter(bytes);
    }
    const since = this.now();
    try {
      const result = await (this.killer === undefined ? work() : this.killer.watch(rows, context, work()));
      this.learn(token, memoryOf(result));
      return result;
    } finally {
      this.atWork -= bytes;
      this.leave(this.now(), since);
    }
  }

  /** What the next request of a token is taken for, in bytes. */
  private expected(token: string): number {
    const bytes = this.memory.get(token) ?? UNKNOWN_BYTES;
    return bytes < LITTLE_BYTES ? 0 : bytes;
  }

  private learn(token: string, bytes: number): void {
    const before = this.memory.get(token);
    if (before === undefined && this.memory.size >= MOST_TOKENS) this.memory.clear();
    this.memory.set(token, Math.max(bytes, (before ?? 0) * FORGETTING));
  }

  private hasRoom(bytes: number): boolean {
    if (this.inside >= Math.floor(this.window)) return false;
    return bytes === 0 || this.atWork === 0 || this.atWork + bytes <= AT_WORK_BYTES;
  }

  private enter(bytes: number): void {
    this.inside += 1;
    this.atWork += bytes;
  }

  /** @returns what the request is taken for, in bytes */
  private turn(rows: readonly Row[], { principal, signal }: RouteContext): Promise<number> {
    const token = `${areQuick(rows)} ${tokenOf(principal)}`;
    const own = this.waiting.get(token) ?? [];
    if (own.length >= MAX_WAITING) return Promise.reject(tooManyWait());
    this.waiting.set(token, own);
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(late);
        signal.removeEventListener('abort', onAbort);
      };
      const giveUp = (error: unknown) => {
        end();
        own.splice(own.indexOf(waiter), 1);
        if (own.length === 0) this.waiting.delete(token);
        reject(error);
      };
      const onAbort = () => giveUp(signal.reason);
      const late = setTimeout(() => giveUp(waitedTooLong()), this.timeoutMs * WAITING_SHARE);
      const waiter: Waiter = {
        token: tokenOf(principal),
        begin: (bytes) => {
          end();
          resolve(bytes);
        },
      };
      own.push(waiter);
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort);
    });
  }

  private leave(now: number, since: number): void {
    this.inside -= 1;
    this.adapt(now, now - since);
    for (let next = this.next(); next !== undefined; next = this.next()) {
      const { token, own, bytes } = next;
      this.waiting.delete(token);
      const first = own.shift() as Waiter;
      // behind the others
      if (own.length > 0) this.waiting.set(token, own);
      this.enter(bytes);
      first.begin(bytes);
    }
  }

  /** The first for whom there is room; what takes little does not wait behind what takes much. */
  private next(): { token: string; own: Waiter[]; bytes: number } | undefined {
    let hasPassed = false;
    for (const [token, own] of this.waiting) {
      const bytes = this.expected((own[0] as Waiter).token);
      if ((bytes === 0 || !hasPassed) && this.hasRoom(bytes)) return { token, own, bytes };
      hasPassed ||= bytes > 0;
    }
    return undefined;
  }

  private adapt(now: number, took: number): void {
    if (now - this.epoch > EPOCH_MS) {
      this.epoch = now;
      this.quickestBefore = this.quickest;
      this.quickest = took;
    }
    this.quickest = Math.min(this.quickest, took);
    const alone = Math.min(this.quickest, this.quickestBefore);
    const isSlowed = took - alone > Math.max(WAIT_MS, alone * WAIT_PART);
    this.window = isSlowed ? Math.max(LEAST, this.window * LESS) : Math.min(MOST, this.window + MORE);
  }
}
