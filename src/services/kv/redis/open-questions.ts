import { isLasting } from '../resp/passing.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';
import { TRANSACTION_PROBE, transactionRefusalOf } from './greeting.js';

/** After what Redis says in passing (LOADING, BUSY) it is left alone so long before it is asked again, in ms. */
export const PASSING_PAUSE_MS = 100;
/** And so long after another refusal, such as of a right that the user lacks and may get. */
const REFUSED_PAUSE_MS = 5_000;
/** A connection that the probe of transactions made useless is followed by ones that are not probed, for so long. */
const UNPROBED_MS = 60_000;

/** Commands that go out together; those of the probe come first. */
export interface Questions {
  readonly commands: readonly Command[];
  /** How many of them belong to the probe of transactions. */
  readonly probing: number;
}

/**
 * What is to be known of every connection: the replies to its greeting, and whether it takes transactions. What Redis said
 * was true when it said it: what it refused is asked again.
 */
export class OpenQuestions {
  /** Why transactions are refused. */
  transactionRefusal: RespError | undefined;
  private probesFrom: number;

  constructor(
    private readonly greeting: readonly Command[],
    probesTransactions: boolean,
  ) {
    this.probesFrom = probesTransactions ? 0 : Number.POSITIVE_INFINITY;
  }

  /** For a new connection. */
  get all(): Questions {
    const probe = performance.now() < this.probesFrom ? [] : TRANSACTION_PROBE;
    return { commands: [...probe, ...this.greeting], probing: probe.length };
  }

  /**
   * Reads the replies and takes those of the probe from the front.
   * @returns after how many ms to ask again; `undefined` when all was answered
   * @throws Error when the connection is stuck in the transaction of the probe: the next ones are not probed
   */
  learn({ probing }: Questions, replies: RespValue[]): number | undefined {
    const { refusal, isStuck } = transactionRefusalOf(replies.splice(0, probing));
    if (probing > 0) this.transactionRefusal = refusal;
    if (isStuck) {
      this.probesFrom = performance.now() + UNPROBED_MS;
      throw new Error(`transactions cannot be ended: ${refusal?.text}`);
    }
    const refused = [refusal, ...replies].filter((reply) => reply instanceof RespError);
    if (refused.length === 0) return undefined;
    return refused.every(isLasting) ? REFUSED_PAUSE_MS : PASSING_PAUSE_MS;
  }
}
