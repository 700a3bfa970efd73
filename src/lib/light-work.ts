/** So long after the last light work heavy work still makes room for it, in ms. */
export const LIGHT_MS = 1_000;

/** Whether light work comes, for all that should make room for it: places for heavy work, and what takes none. */
export class LightWork {
  private at = Number.NEGATIVE_INFINITY;

  came(now: number): void {
    this.at = now;
  }

  comes(now: number): boolean {
    return now - this.at < LIGHT_MS;
  }
}
