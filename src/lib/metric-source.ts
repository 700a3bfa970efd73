export interface MetricSample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Of a histogram's parts, such as `..._bucket`. */
  readonly metricName?: string;
}

/** A metric that is read when somebody asks, so that what it counts costs as little as a number that grows. */
export interface MetricSource {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** How the values of several processes become one; their sum without a word. */
  readonly aggregator?: 'sum' | 'min' | 'max';
  collect(): readonly MetricSample[];
}

export interface MetricRegistry {
  add(source: MetricSource): void;
}
