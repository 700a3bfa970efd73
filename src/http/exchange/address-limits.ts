import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import { HttpError } from '../errors.js';
import type { ClientAddress } from './client-address.js';

interface Window {
  count: number;
  endsAt: number;
}

/** Addresses that are remembered; beyond them those whose window is over are forgotten, and then the oldest. */
const MOST_ADDRESSES = 100_000;

/** How many requests each address may send, in windows of a fixed length; each process counts by itself. */
export class AddressLimits {
  private readonly windows = new Map<string, Window>();

  constructor(
    private readonly requests: number,
    private readonly seconds: number,
    private readonly clientAddress: ClientAddress,
    /** Monotonic milliseconds. */
    private readonly now: () => number,
  ) {}

  /** Counts a request. @throws HttpError 429 */
  take(request: IncomingMessage): void {
    const now = this.now();
    const window = this.windowOf(networkOf(this.clientAddress(request) ?? ''), now);
    window.count++;
    if (window.count <= this.requests) return;
    const resetS = Math.max(1, Math.ceil((window.endsAt - now) / 1_000));
    throw new HttpError('too_many_requests', 'Too many requests come from this address.', {
      retryAfter: resetS,
      headers: {
        'RateLimit-Limit': String(this.requests),
        'RateLimit-Remaining': '0',
        'RateLimit-Reset': String(resetS),
      },
    });
  }

  private windowOf(address: string, now: number): Window {
    const known = this.windows.get(address);
    if (known !== undefined && known.endsAt > now) return known;
    // put at the end again: the order is that of their ends
    this.windows.delete(address);
    const window = { count: 0, endsAt: now + this.seconds * 1_000 };
    this.windows.set(address, window);
    for (const [other, { endsAt }] of this.windows) {
      if (endsAt > now && this.windows.size <= MOST_ADDRESSES) break;
      this.windows.delete(other);
    }
    return window;
  }
}

/** Of IPv6 the first 64 bits: one client has all of the others. */
function networkOf(text: string): string {
  if (!ipaddr.isValid(text)) return text;
  const address = ipaddr.process(text);
  return address.kind() === 'ipv4' ? text : address.toByteArray().slice(0, 8).join('.');
}
