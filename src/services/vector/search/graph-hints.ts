/** Most namespaces, and filters, that are remembered. */
const MAX_HINTS = 10_000;

/** Records come and go, and with them what is quicker. */
const FILTER_HINT_MS = 60_000;

/**
 * Which namespaces have an HNSW index, by what earlier queries have told: statements name the index by its namespace's
 * id, which the text of a statement must hold; and which filters the graph is of no use for. A hint that is outdated costs time,
 * no more.
 */
export class GraphHints {
  private readonly ids = new Map<string, number>();
  /** By namespace, filter and topK: until when. */
  private readonly exactFilters = new Map<string, number>();

  constructor(private readonly now: () => number = performance.now.bind(performance)) {}

  get(namespace: string): number | undefined {
    return this.ids.get(namespace);
  }

  /** @param id null or undefined: there is none (any more) */
  learn(namespace: string, id: number | null | undefined): void {
    if (id === this.ids.get(namespace)) return;
    if (id === null || id === undefined) this.ids.delete(namespace);
    else {
      if (this.ids.size >= MAX_HINTS) this.ids.clear();
      this.ids.set(namespace, id);
    }
  }

  /** Comparing all matches of a filter was found to be quicker than a try at the graph; to look again takes 1 ms. */
  learnExact(namespace: string, jsonpath: string, topK: number): void {
    if (this.exactFilters.size >= MAX_HINTS) this.exactFilters.clear();
    this.exactFilters.set(keyOf(namespace, jsonpath, topK), this.now() + FILTER_HINT_MS);
  }

  isExact(namespace: string, jsonpath: string, topK: number): boolean {
    return (this.exactFilters.get(keyOf(namespace, jsonpath, topK)) ?? 0) > this.now();
  }
}

function keyOf(namespace: string, jsonpath: string, topK: number): string {
  return `${topK} ${jsonpath} ${namespace}`;
}
