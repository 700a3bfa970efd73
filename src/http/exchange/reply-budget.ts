import type { Socket } from 'node:net';
import type { Principal } from '../route.js';

/**
 * A reply of fewer bytes is neither counted nor refused: an error in its place would be no smaller, and requests in flight
 * are bounded by their number.
 */
export const SMALL_REPLY = 4 * 1024;

/** Whose replies these are. */
type Holder = Socket | Principal | string;

/**
 * Bytes of replies that wait for their clients. A client that asks and does not read holds them for as
 * long as `http.replyIdleTimeoutMs`, so they have one bound; half of it is the most for one token and a quarter for one
 * connection, so that nobody takes it from the others. Whatever bound it meets, a reply counts as half of that at most:
 * one that is larger than all bounds is still sent when little else waits.
 */
export class ReplyBudget {
  private bytes = 0;
  private readonly shares = new Map<Holder, number>();

  /** @param limit in bytes */
  constructor(private readonly limit: number) {}

  /** Bytes that wait. */
  get waiting(): number {
    return this.bytes;
  }

  /** No more should come to wait. */
  get isFull(): boolean {
    return this.bytes >= this.limit;
  }

  /**
   * Lets a reply wait, until what is returned is called.
   * @param isLast nobody can have it again: it may take as much once more
   * @returns `undefined` when there is no room
   */
  take(socket: Socket, principal: Principal, bytes: number, isLast: boolean): (() => void) | undefined {
    const limit = isLast ? this.limit * 2 : this.limit;
    const owner = principal.key ?? principal;
    if (!fits(this.bytes, bytes, limit)) return undefined;
    if (!fits(this.shareOf(owner), bytes, limit / 2)) return undefined;
    if (!fits(this.shareOf(socket), bytes, limit / 4)) return undefined;
    this.add(socket, owner, bytes);
    return () => this.add(socket, owner, -bytes);
  }

  /** Counts what came to wait in a stream, or below 0 what no longer does. */
  change(bytes: number): void {
    this.bytes += bytes;
  }

  private shareOf(holder: Holder): number {
    return this.shares.get(holder) ?? 0;
  }

  private add(socket: Socket, owner: Holder, bytes: number): void {
    this.bytes += bytes;
    for (const holder of [socket, owner]) {
      const share = this.shareOf(holder) + bytes;
      if (share > 0) this.shares.set(holder, share);
      else this.shares.delete(holder);
    }
  }
}

function fits(held: number, bytes: number, limit: number): boolean {
  return held + Math.min(bytes, limit / 2) <= limit;
}
