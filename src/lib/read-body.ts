import type { ByteBudget } from './byte-budget.js';

export interface ReadBody {
  readonly body: Buffer;
  /** There was more than `limit`, or than the budget had left. */
  readonly truncated: boolean;
  /** Gives back what the body holds of the budget; to be called once, when the body is done with. */
  readonly release: () => void;
}

/** So much of a response is kept whatever the budget has left. */
const UNBUDGETED_BYTES = 16 * 1024;

/** Reads a body of which at most `limit` bytes are kept; the rest is not read. */
export async function readUpTo(
  stream: AsyncIterable<Buffer> & { destroy(): unknown },
  limit: number,
  budget: ByteBudget | undefined,
): Promise<ReadBody> {
  const chunks: Buffer[] = [];
  let size = 0;
  let taken = 0;
  const release = () => budget?.giveBack(taken);
  const whole = (truncated: boolean) => ({ body: Buffer.concat(chunks), truncated, release });
  try {
    for await (const chunk of stream) {
      const kept = chunk.subarray(0, limit - size);
      if (budget !== undefined && size + kept.length > UNBUDGETED_BYTES) {
        // leaving the loop destroys the stream and with it the connection: the rest is never read
        if (!budget.take(kept.length)) return whole(true);
        taken += kept.length;
      }
      chunks.push(kept);
      size += kept.length;
      if (kept.length < chunk.length) return whole(true);
    }
    return whole(false);
  } catch (error) {
    release();
    throw error;
  }
}
