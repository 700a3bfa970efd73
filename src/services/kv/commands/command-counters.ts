/** How often a command ran, by result. */
export class CommandCounter {
  ok = 0;
  error = 0;
  refused = 0;

  constructor(readonly name: string) {}
}

/** Label of what is in nobody's command table: names are chosen by clients and would grow the metrics without end. */
const OTHER = 'other';

/** Counts by command of one database, for its metrics; they outlive a new connection and its command table. */
export class CommandCounters {
  private readonly counters = new Map<string, CommandCounter>();
  private readonly other = new CommandCounter(OTHER);

  /** @param name in upper case; `known`: the server has it */
  of(name: string, known: boolean): CommandCounter {
    if (!known) return this.other;
    const counter = this.counters.get(name) ?? new CommandCounter(name.toLowerCase());
    this.counters.set(name, counter);
    return counter;
  }

  all(): CommandCounter[] {
    return [...this.counters.values(), this.other];
  }
}
