import { AggregatorRegistry } from 'prom-client';
import { Metrics, type MetricsSnapshot } from '../../../src/http/monitoring/metrics.js';
import { MetricsCollector } from '../../../src/workers/metrics-collector.js';

/** The metrics of a worker that has counted so many requests. */
function metricsOf(requests: number): Metrics {
  const metrics = new Metrics();
  for (let i = 0; i < requests; i++) metrics.requests.observe('test.one', 200, 0.01);
  return metrics;
}

const snapshot = (requests: number) => metricsOf(requests).snapshot();

async function totals(snapshots: readonly MetricsSnapshot[]) {
  const text = await AggregatorRegistry.aggregate([...snapshots]).metrics();
  const value = (name: string) => Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);
  return {
    requests: value('portico_http_request_duration_seconds_count'),
    workers: value('portico_workers'),
    startedAt: value('process_start_time_seconds'),
  };
}

it('adds up what the workers report', async () => {
  const asked: number[] = [];
  const collector = new MetricsCollector((worker) => asked.push(worker));
  const all = collector.collect([1, 2]);
  expect(asked).toEqual([1, 2]);
  collector.reported(1, 1, await snapshot(3));
  collector.reported(2, 1, await snapshot(4));
  const sum = await totals(await all);
  expect(sum).toMatchObject({ requests: 7, workers: 2 });
  // of two workers in this one process: neither summed up nor averaged away
  expect(Math.abs(sum.startedAt - (Date.now() / 1_000 - process.uptime()))).toBeLessThan(5);
});

it('does not wait for a worker that dies, and keeps what it and others had counted', async () => {
  const collector = new MetricsCollector(() => undefined);
  const first = collector.collect([1, 2]);
  collector.reported(1, 1, await snapshot(3));
  collector.reported(2, 1, await snapshot(4));
  await first;
  const second = collector.collect([1, 2]);
  collector.reported(1, 2, await snapshot(5));
  collector.final(2, await metricsOf(6).counts());
  collector.gone(2);
  expect(await totals(await second)).toMatchObject({ requests: 11, workers: 1 });
  // one that reported and died before the others did is counted once
  const third = collector.collect([1, 2]);
  collector.reported(1, 3, await snapshot(10));
  collector.gone(1);
  collector.reported(2, 3, await snapshot(1));
  expect(await totals(await third)).toMatchObject({ requests: 17, workers: 1 });
  const nobody = await totals(await collector.collect([]));
  expect(nobody.requests).toBe(16);
});
