import { randomUUID } from 'node:crypto';
import { HttpError } from '../../../http/errors.js';
import { endedWithin } from '../../../lib/within.js';
import type { Delivery } from './delivery.js';
import type { TopicPartitionOffset } from './group-offsets.js';

/** So many deliveries are remembered, the latest: a client tells soon whether it has read one. */
const RECENT = 16;

/** Handed out on the condition that the client confirms it. */
interface Held {
  readonly id: string;
  readonly delivery: Delivery;
  /** Its reply went out completely. */
  isSent: boolean;
}

/** What one consumer instance was given: what of it has arrived, and what comes again. */
export class Deliveries {
  /** One at most: the next consume hands it out again, or follows its confirmation. */
  private held: Held | undefined;
  /** By id what may be taken back; `undefined` where it was confirmed. */
  private readonly recent = new Map<string, Delivery | undefined>();
  /** Resolves when it is known how the last reply fared. */
  private lastSettled: Promise<void> = Promise.resolve();

  /**
   * `delivery` is on its way to the client.
   * @param mustConfirm it comes again unless the client confirms it; else it has arrived when its reply went out
   */
  begin(delivery: Delivery, mustConfirm: boolean): { id: string; settle: (isSent: boolean) => void } {
    const id = randomUUID();
    let isKnown: () => void = () => {};
    this.lastSettled = new Promise((resolve) => {
      isKnown = resolve;
    });
    const fared = mustConfirm ? this.hold(id, delivery) : this.handOver(id, delivery);
    const settle = (isSent: boolean) => {
      fared(isSent);
      isKnown();
    };
    return { id, settle };
  }

  /**
   * Resolves when it is known how the reply fared that is on its way, at the latest after `ms`: a client that has read it is
   * often quicker than the word that it went out, above all from another gateway.
   */
  settled(ms: number): Promise<void> {
    return endedWithin(ms, this.lastSettled);
  }

  /** What was not confirmed comes again. */
  putBackHeld(): void {
    this.held?.delivery.putBack();
    this.held = undefined;
  }

  /** The client has read it. @returns whether it is known; otherwise its records come again */
  confirm(id: string): boolean {
    if (this.held?.id === id) this.confirmHeld(this.held);
    else if (this.recent.has(id)) this.recent.set(id, undefined);
    else return false;
    return true;
  }

  /** The client says that it has read what it was sent last. */
  confirmLast(): void {
    if (this.held?.isSent === true) this.confirmHeld(this.held);
  }

  /** The client has committed `positions`, so it has read what lies before them. */
  confirmBefore(positions: readonly TopicPartitionOffset[]): void {
    if (this.held?.delivery.passOver(positions) === true) this.confirmHeld(this.held);
    for (const delivery of this.recent.values()) delivery?.passOver(positions);
  }

  /** The client has not read what seemed to have arrived. */
  takeBack(id: string): void {
    this.recent.get(id)?.takeBack();
    this.recent.delete(id);
  }

  private handOver(id: string, delivery: Delivery): (isSent: boolean) => void {
    return (isSent) => (isSent ? this.arrived(id, delivery) : delivery.putBack());
  }

  private hold(id: string, delivery: Delivery): (isSent: boolean) => void {
    const held: Held = { id, delivery, isSent: false };
    this.held = held;
    return (isSent) => {
      // confirmed meanwhile
      if (this.held !== held) return;
      held.isSent = isSent;
      if (!isSent) this.putBackHeld();
    };
  }

  private confirmHeld({ id, delivery }: Held): void {
    this.held = undefined;
    delivery.arrived();
    this.remember(id, undefined);
  }

  private arrived(id: string, delivery: Delivery): void {
    delivery.arrived();
    this.remember(id, delivery);
  }

  private remember(id: string, delivery: Delivery | undefined): void {
    this.recent.set(id, delivery);
    const [oldest] = this.recent.keys();
    if (this.recent.size > RECENT) this.recent.delete(oldest as string);
  }
}

/** Of a commit that names it. */
export function unknownDelivery(): HttpError {
  return new HttpError(
    'conflict',
    'This delivery is not known to the instance (any more): what was not committed of it comes again.',
  );
}
