import type { Argument } from '../resp/resp-encoder.js';

/** Digits of a SHA-1 sum. */
const LENGTH = 40;
/** Far more scripts than an application has; who makes texts on the fly uses each once. */
const KEPT = 1_000;

/** Which script Redis holds for one that was changed on its way: digests as 40 hexadecimal digits in lower case. */
export class ScriptDigests {
  /** Least recently used first. */
  private readonly stored = new Map<string, string>();

  constructor(private readonly kept = KEPT) {}

  remember(sent: string, stored: string): void {
    this.stored.delete(sent);
    this.stored.set(sent, stored);
    const oldest = this.stored.keys().next().value;
    if (this.stored.size > this.kept && oldest !== undefined) this.stored.delete(oldest);
  }

  /** The digest of what Redis holds for the script `sent`; `undefined` where it is the same, or none is known. */
  find(sent: Argument | undefined): string | undefined {
    if (this.stored.size === 0 || sent?.length !== LENGTH) return undefined;
    // Redis takes digests in any case
    const digest = (typeof sent === 'string' ? sent : sent.toString('latin1')).toLowerCase();
    const stored = this.stored.get(digest);
    if (stored !== undefined) this.remember(digest, stored);
    return stored;
  }
}
