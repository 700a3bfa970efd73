/** Most namespaces, and filters, that are remembered. */
const MAX_HINTS = 10_000;

/** Records come and go, and with them what is quicker. */
const FILTER_HINT_MS = 60_000;

/** A namespace's graph. */
export interface GraphHint {
  readonly namespaceId: number;
  /** See `GraphUse`. */
  readonly repeats: boolean;
}

/**
 * Which namespaces have an HNSW index, by what earlier queries have told: statements name the index by its namespace's
 * id, which the text of a statement must hold; and which filters the graph is of no use for. A hint that is outdated costs time,
 * no more.
 */
export class GraphHints {
  private readonly graphs = new Map<string, GraphHint>();
  /** By namespace, filter and topK: until when. */
  private readonly exactFilters = new Map<string, number>();

  constructor(private readonly now: () => number = performance.now.bind(performance)) {}

  get(namespace: string): GraphHint | undefined {
    return this.graphs.get(namespace);
  }

  /** @param id null or undefined: there is none (any more) */
  learn(namespace: string, id: number | null | undefined, repeats: boolean): void {
    const known = this.graphs.get(namespace);
    if (id === known?.namespaceId && repeats === known?.repeats) return;
    if (id === null || id === undefined) this.graphs.delete(namespace);
    else {
      if (this.graphs.size >= MAX_HINTS) this.graphs.clear();
      this.graphs.set(namespace, { namespaceId: id, repeats });
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
