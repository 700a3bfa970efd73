import { LatencyHistogram } from '../../lib/latency-histogram.js';
import type { MetricSample, MetricSource } from '../../lib/metric-source.js';

interface Series {
  readonly operation: string;
  readonly status: string;
  readonly histogram: LatencyHistogram;
}

/** A latency histogram by operation and status whose observation costs two map look-ups beside. */
export class RequestHistogram implements MetricSource {
  readonly name = 'portico_http_request_duration_seconds';
  readonly help = 'Time from the request head to the end of the reply, of a stream to its head.';
  readonly type = 'histogram';
  private readonly series = new Map<string, Map<number, Series>>();

  observe(operation: string, status: number, seconds: number): void {
    const series = this.series.get(operation)?.get(status) ?? this.add(operation, status);
    series.histogram.observe(seconds);
  }

  collect(): MetricSample[] {
    return [...this.series.values()].flatMap((byStatus) =>
      [...byStatus.values()].flatMap(({ operation, status, histogram }) =>
        histogram.samples(this.name, { operation, status }),
      ),
    );
  }

  /** Every series there is by now. */
  each(look: (operation: string, status: string, histogram: LatencyHistogram) => void): void {
    for (const byStatus of this.series.values())
      for (const { operation, status, histogram } of byStatus.values()) look(operation, status, histogram);
  }

  private add(operation: string, status: number): Series {
    const series = { operation, status: String(status), histogram: new LatencyHistogram() };
    const byStatus = this.series.get(operation) ?? new Map<number, Series>();
    byStatus.set(status, series);
    this.series.set(operation, byStatus);
    return series;
  }
}
