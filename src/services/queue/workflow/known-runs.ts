import type { KnownRun } from './run.js';

/** Runs that are remembered, and characters of what they were started with. */
const [MOST_RUNS, MOST_CHARACTERS] = [1_000, 1024 * 1024];

/**
 * Runs that had to do with this gateway lately: what follows from a step is known without a look into Postgres. Whether a run
 * is still under way is not known here. The one that was used longest ago is forgotten first.
 */
export class KnownRuns {
  private readonly runs = new Map<string, { run: KnownRun; characters: number }>();
  private characters = 0;

  get(id: string): KnownRun | undefined {
    const known = this.runs.get(id);
    if (known === undefined) return undefined;
    this.runs.delete(id);
    this.runs.set(id, known);
    return known.run;
  }

  add(run: KnownRun): void {
    // the SDK is about to tell other settings
    if (run.awaitsSdk) return;
    this.forget(run.id);
    const characters = charactersOf(run);
    if (characters > MOST_CHARACTERS / 10) return;
    this.runs.set(run.id, { run, characters });
    this.characters += characters;
    for (const id of this.runs.keys()) {
      if (this.runs.size <= MOST_RUNS && this.characters <= MOST_CHARACTERS) return;
      this.forget(id);
    }
  }

  forget(id: string): void {
    this.characters -= this.runs.get(id)?.characters ?? 0;
    this.runs.delete(id);
  }
}

function charactersOf({ id, url, labels, settings, invoker }: KnownRun): number {
  return JSON.stringify([id, url, labels, settings, invoker]).length;
}
