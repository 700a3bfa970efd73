/** How often a command ran, by result. */
export class Tally {
  ok = 0;
  error = 0;
  refused = 0;

  constructor(readonly name: string) {}
}

/** Label of what is in nobody's command table: names are chosen by clients and would grow the metrics without end. */
const OTHER = 'other';

/** Counts by command of one database, for its metrics; they outlive a new connection and its command table. */
export class CommandTallies {
  private readonly tallies = new Map<string, Tally>();
  private readonly other = new Tally(OTHER);

  /** @param name in upper case; `known`: the server has it */
  of(name: string, known: boolean): Tally {
    if (!known) return this.other;
    const tally = this.tallies.get(name) ?? new Tally(name.toLowerCase());
    this.tallies.set(name, tally);
    return tally;
  }

  all(): Tally[] {
    return [...this.tallies.values(), this.other];
  }
}
