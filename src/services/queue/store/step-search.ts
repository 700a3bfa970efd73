import { StepSize } from './step-size.js';

/** A search that has found too little goes on for so long, in ms; the cursor says where it stopped. */
export const SEARCH_MS = 3_000;

/** What one statement found: one more than wanted where there are. */
interface Step<Found, Place> {
  readonly found: readonly Found[];
  /** The last that a whole step looked at, behind which there may be more. */
  readonly bound: Place | undefined;
}

/**
 * Looks for `count` in steps of a bounded number of rows.
 * @param most rows that one step looks at, at most
 * @param step is told behind which place it begins, how many are wanted yet and how many rows it may look at
 * @returns what was found and behind which place the search goes on; `undefined`: there is nothing more
 */
export async function searchInSteps<Place, Found extends Place>(
  most: number,
  { count, after }: { readonly count: number; readonly after: Place | undefined },
  step: (after: Place | undefined, count: number, rows: number) => Promise<Step<Found, Place>>,
): Promise<{ found: Found[]; next: Place | undefined }> {
  const until = performance.now() + SEARCH_MS;
  const all: Found[] = [];
  const size = new StepSize(most);
  for (let last = after; ; ) {
    const rest = count - all.length;
    const { found, bound } = await size.run((rows) => step(last, rest, rows));
    all.push(...found.slice(0, rest));
    if (found.length > rest) return { found: all, next: all.at(-1) };
    if (bound === undefined) return { found: all, next: undefined };
    if (performance.now() > until) return { found: all, next: bound };
    last = bound;
  }
}
