import { LatencyHistogram } from '../../lib/latency-histogram.js';
import type { MetricRegistry, MetricSample } from '../../lib/metric-source.js';
import type { KvClient } from './database/client.js';
import type { WireObserver } from './redis/wire.js';
import type { ReadCounts } from './replicas/read-your-writes.js';
import type { StreamCounts } from './streams/event-stream.js';

const ROUND_TRIP = 'portico_kv_backend_round_trip_seconds';

/** Metrics of all databases. */
export class KvMetrics {
  private readonly clients = new Map<string, KvClient>();
  private readonly reads = new Map<string, ReadCounts>();
  private readonly roundTrips = new Map<string, LatencyHistogram>();

  constructor(registry: MetricRegistry) {
    registry.add({
      name: 'portico_kv_commands_total',
      help: 'Commands by name and result: ok, error (by Redis) or refused (by Portico).',
      type: 'counter',
      collect: () => this.commands(),
    });
    registry.add({
      name: 'portico_kv_pending_requests',
      help: 'Requests whose replies from Redis are due on the shared connections.',
      type: 'gauge',
      collect: () => this.gauge((client) => client.pending),
    });
    registry.add({
      name: 'portico_kv_exclusive_connections',
      help: 'Requests that have a connection of their own: XREAD BLOCK, transactions of ACL users.',
      type: 'gauge',
      collect: () => this.gauge((client) => client.exclusiveInUse),
    });
    registry.add({
      name: 'portico_kv_streams_open',
      help: 'Open streams by kind: subscribe, psubscribe, monitor.',
      type: 'gauge',
      collect: () => this.streams(({ open }) => open),
    });
    registry.add({
      name: 'portico_kv_stream_messages_total',
      help: 'Messages handed to streams: one that two clients get counts twice.',
      type: 'counter',
      collect: () => this.streams(({ messages }) => messages),
    });
    registry.add({
      name: 'portico_kv_reads_total',
      help: 'Requests that only read, where there are replicas: answered by a replica, by the primary because a replica was behind, or by the primary at once.',
      type: 'counter',
      collect: () =>
        [...this.reads].flatMap(([database, counts]) =>
          Object.entries(counts).map(([result, value]) => ({ labels: { database, result }, value })),
        ),
    });
    registry.add({
      name: ROUND_TRIP,
      help: 'Time from a write to Redis to the first reply; a sample of the writes.',
      type: 'histogram',
      collect: () =>
        [...this.roundTrips].flatMap(([database, histogram]) => histogram.samples(ROUND_TRIP, { database })),
    });
  }

  observer(database: string): WireObserver {
    const histogram = new LatencyHistogram();
    this.roundTrips.set(database, histogram);
    return { roundTrip: (seconds) => histogram.observe(seconds) };
  }

  watch(database: string, client: KvClient): void {
    this.clients.set(database, client);
  }

  watchReads(database: string, counts: ReadCounts): void {
    this.reads.set(database, counts);
  }

  private commands(): MetricSample[] {
    return [...this.clients].flatMap(([database, { counters }]) =>
      counters.all().flatMap(({ name: command, ok, error, refused }) =>
        Object.entries({ ok, error, refused })
          .filter(([, value]) => value > 0)
          .map(([result, value]) => ({ labels: { database, command, result }, value })),
      ),
    );
  }

  private streams(read: (counts: StreamCounts) => number): MetricSample[] {
    return [...this.clients].flatMap(([database, { streams }]) =>
      Object.entries(streams.counters).map(([kind, counts]) => ({
        labels: { database, kind },
        value: read(counts),
      })),
    );
  }

  private gauge(read: (client: KvClient) => number): MetricSample[] {
    return [...this.clients].map(([database, client]) => ({ labels: { database }, value: read(client) }));
  }
}
