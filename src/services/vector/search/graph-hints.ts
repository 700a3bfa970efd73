/** Most namespaces that are remembered. */
const MAX_HINTS = 10_000;

/**
 * Which namespaces have an HNSW index, by what earlier queries have told: statements name the index by its namespace's
 * id, which the text of a statement must hold. A hint that is outdated costs a second statement, no more.
 */
export class GraphHints {
  private readonly ids = new Map<string, number>();

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
}
