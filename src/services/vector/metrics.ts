import type { MetricRegistry, MetricSample } from '../../lib/metric-source.js';

/** How a query was answered: every candidate compared, by the graph, by the postings of a sparse part, or by both parts. */
export type SearchPlan = 'exact' | 'graph' | 'sparse' | 'hybrid';

/** What has happened with one index since the start. */
export class IndexCounters {
  readonly searches: Record<SearchPlan, number> = { exact: 0, graph: 0, sparse: 0, hybrid: 0 };
  /** Records that upserts have stored, replaced ones among them. */
  written = 0;
  deleted = 0;
  builtGraphs = 0;
  /** Large namespaces that have no graph yet, the one that is built among them, as this process has last seen. */
  toBuild = 0;
  /** Graphs that this process builds now. */
  building = 0;
  /** Of the graph that this process builds now: the share of the table that is in it. */
  buildProgress = 0;
}

/** Metrics of all indexes. */
export class VectorMetrics {
  private readonly counters = new Map<string, IndexCounters>();

  constructor(registry: MetricRegistry) {
    this.addToBuild(registry);
    registry.add({
      name: 'portico_vector_searches_total',
      help: 'Queries by how they were answered: every candidate compared (exact), by the graph, by sparse postings, or by both parts (hybrid).',
      type: 'counter',
      collect: () =>
        [...this.counters].flatMap(([name, counters]) =>
          Object.entries(counters.searches).map(([plan, value]) => ({
            labels: { index: name, plan },
            value,
          })),
        ),
    });
    const add = (
      name: string,
      help: string,
      type: 'counter' | 'gauge',
      read: (counters: IndexCounters) => number,
    ) => registry.add({ name, help, type, collect: () => this.each(read) });
    add(
      'portico_vector_records_written_total',
      'Records that upserts have stored, replaced ones among them.',
      'counter',
      ({ written }) => written,
    );
    add('portico_vector_records_deleted_total', 'Records deleted.', 'counter', ({ deleted }) => deleted);
    add(
      'portico_vector_graphs_built_total',
      'HNSW indexes of namespaces that this process has built.',
      'counter',
      ({ builtGraphs }) => builtGraphs,
    );
    add(
      'portico_vector_graphs_building',
      'HNSW indexes of namespaces that this process builds now; until one is there its namespace is compared exactly.',
      'gauge',
      ({ building }) => building,
    );
  }

  private addToBuild(registry: MetricRegistry): void {
    registry.add({
      name: 'portico_vector_graph_build_progress',
      help: 'Of the HNSW index that is built now: the share of the table that is in it, from 0 to 1; 0 where none is built.',
      type: 'gauge',
      aggregator: 'max',
      collect: () => this.each(({ buildProgress }) => buildProgress),
    });
    registry.add({
      name: 'portico_vector_graphs_to_build',
      help: 'Large namespaces without an HNSW index yet, the one that is built among them; each is compared exactly meanwhile.',
      type: 'gauge',
      aggregator: 'max',
      collect: () => this.each(({ toBuild }) => toBuild),
    });
  }

  /** @returns where what happens with the index is counted */
  watch(name: string): IndexCounters {
    const counters = this.counters.get(name) ?? new IndexCounters();
    this.counters.set(name, counters);
    return counters;
  }

  /** The index has gone. */
  forget(name: string): void {
    this.counters.delete(name);
  }

  private each(read: (counters: IndexCounters) => number): MetricSample[] {
    return [...this.counters].map(([name, counters]) => ({ labels: { index: name }, value: read(counters) }));
  }
}
