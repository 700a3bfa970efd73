/**
 * How long a slice of work holds the event loop, in ms. A request takes three or four turns of the loop, so with 4 ms another's
 * large requests cost it 15 to 20 ms at p50 (bench `tenants`), with 1 about 5; 20 to 50 µs go to the change of turns.
 */
const SLICE_MS = 1;

const waiting: (() => void)[] = [];

/**
 * Resolves when it is this caller's turn. One a turn of the loop: however many large requests there are at once, what is
 * ready on sockets and timers comes between any two of their slices.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(giveTurn);
}

/**
 * Runs long work in slices, the first of them in a turn of its own.
 * @param work yields wherever it may rest; between two such places it should take 1 ms or less
 * @throws what `work` throws
 */
export async function inSlices<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    await nextTurn();
    const step = oneSlice(work);
    if (step.done === true) return step.value;
  }
}

/** `inSlices` for work that is mostly short: begins at once, and is a promise only where it takes longer than a slice. */
export function sliced<T>(work: Generator<void, T>): T | Promise<T> {
  const step = oneSlice(work);
  return step.done === true ? step.value : inSlices(work);
}

/** Elements that `mapped` does before it looks at the time, where nobody says that they are large. */
const STEP = 50;

/** `elements.map(of)` in slices; a promise only where it takes longer than one. @param step elements between two looks at the time */
export function mapped<T, U>(elements: readonly T[], of: (element: T) => U, step = STEP): U[] | Promise<U[]> {
  return sliced(mapInSteps(elements, of, step));
}

function* mapInSteps<T, U>(
  elements: readonly T[],
  of: (element: T) => U,
  step: number,
): Generator<void, U[]> {
  const results: U[] = [];
  for (const element of elements) {
    results.push(of(element));
    if (results.length % step === 0) yield;
  }
  return results;
}

/** The same work in one go. */
export function wholly<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

function oneSlice<T>(work: Generator<void, T>): IteratorResult<void, T> {
  const until = performance.now() + SLICE_MS;
  for (;;) {
    const step = work.next();
    if (step.done === true || performance.now() >= until) return step;
  }
}

/** For long work that waits for other things in between: lets others have their turn when a slice is over. */
export class Pace {
  private until = performance.now() + SLICE_MS;

  async rest(): Promise<void> {
    if (performance.now() < this.until) return;
    await nextTurn();
    this.until = performance.now() + SLICE_MS;
  }
}
