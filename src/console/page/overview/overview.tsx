import { useMemo } from 'preact/hooks';
import { count, latency, rate } from '../data/format.js';
import { hrefOf } from '../data/router.js';
import { instances } from '../data/session.js';
import { Chart, type Line } from '../parts/chart.js';
import { Badge, Empty, Failure, PageHead, Panel } from '../parts/layout.js';
import { type Column, Table } from '../parts/table.js';
import { type BackendState, type Series, type ServiceSeries, useHealth, useSeries } from './use-series.js';

/** What people call a service has one colour in every chart. */
const COLOURS: Readonly<Record<string, number>> = { kv: 1, vector: 4, broker: 3, queue: 2 };

/** The last minute stands in the tiles. */
const LATELY = 12;

type Measure = keyof ServiceSeries;

/** The console's own questions are not what a person asks about. */
const shownServices = ({ services }: Series) =>
  Object.entries(services).filter(
    ([name]) => name in COLOURS || !['console', 'operations', 'unrouted', 'http'].includes(name),
  );

function linesOf(series: Series, measure: Measure, perSecond: boolean): Line[] {
  const seconds = series.stepMs / 1_000;
  return shownServices(series).map(([name, own]) => ({
    label: name,
    colour: COLOURS[name] ?? 5,
    points: own[measure].map((point) => (point === null ? null : perSecond ? point / seconds : point)),
  }));
}

function lately(series: Series, measure: Measure): number {
  return shownServices(series).reduce(
    (sum, [, own]) => sum + own[measure].slice(-LATELY).reduce<number>((all, one) => all + (one ?? 0), 0),
    0,
  );
}

function worst(series: Series, measure: 'p50' | 'p99'): number | undefined {
  const points = shownServices(series).flatMap(([, own]) => own[measure].slice(-LATELY));
  const known = points.filter((point): point is number => point !== null);
  return known.length === 0 ? undefined : Math.max(...known);
}

export function Overview() {
  const series = useSeries();
  const health = useHealth();
  return (
    <>
      <PageHead title="Overview">
        <span class="muted">the last 15 minutes, all processes added up</span>
      </PageHead>
      <Failure error={series.error ?? health.error} />
      {series.data === undefined ? null : <Tiles series={series.data} />}
      <HealthPanel states={health.data} />
      {series.data === undefined ? <Empty>Loading…</Empty> : <Charts series={series.data} />}
    </>
  );
}

function Tiles({ series }: { readonly series: Series }) {
  const requests = lately(series, 'requests');
  const failures = lately(series, 'failures');
  const [p50, p99] = [worst(series, 'p50'), worst(series, 'p99')];
  const seconds = (LATELY * series.stepMs) / 1_000;
  const tiles: [string, string][] = [
    ['requests a second', rate(requests / seconds)],
    ['slowest median', p50 === undefined ? '–' : latency(p50)],
    ['slowest p99', p99 === undefined ? '–' : latency(p99)],
    ['refused (4xx)', count(lately(series, 'clientErrors'))],
    ['failed (5xx)', count(failures)],
    ['in flight', count(series.inFlight.at(-1) ?? 0)],
  ];
  return (
    <div class="tiles">
      {tiles.map(([name, value]) => (
        <div class="tile" key={name}>
          <span class="value">{value}</span>
          <span class="name">{name}</span>
        </div>
      ))}
    </div>
  );
}

const HEALTH: readonly Column<BackendState>[] = [
  {
    title: 'Service',
    cell: ({ service, instance }) => {
      const isOpen = instances.value.some(
        ({ unlocked }) => unlocked.service === service && unlocked.name === instance,
      );
      const name = instance === 'default' ? service : `${service} · ${instance}`;
      return isOpen ? <a href={hrefOf([service, instance])}>{name}</a> : name;
    },
  },
  { title: 'Backend', cell: ({ backend }) => backend },
  {
    title: 'State',
    cell: ({ up }) => <Badge tone={up ? 'good' : 'bad'}>{up ? 'up' : 'down'}</Badge>,
  },
  { title: 'Why not', cell: ({ reason }) => reason ?? '' },
];

function HealthPanel({ states }: { readonly states: readonly BackendState[] | undefined }) {
  return (
    <Panel title="Backends" isFlush>
      <Table
        label="Backends"
        columns={HEALTH}
        rows={states ?? []}
        keyOf={({ service, instance, backend }) => `${service}/${instance}/${backend}`}
        isBusy={states === undefined}
      />
    </Panel>
  );
}

function Charts({ series }: { readonly series: Series }) {
  const times = useMemo(
    () => series.inFlight.map((_, i) => ((series.firstStep + i) * series.stepMs) / 1_000),
    [series],
  );
  const charts = useMemo(
    () =>
      [
        ['Requests a second', linesOf(series, 'requests', true), rate],
        ['p99 of the time to answer', linesOf(series, 'p99', false), latency],
        ['Median of the time to answer', linesOf(series, 'p50', false), latency],
        ['Failed a second (5xx)', linesOf(series, 'failures', true), rate],
      ] as const,
    [series],
  );
  if (shownServices(series).length === 0) return <Empty>No service was asked in the last 15 minutes.</Empty>;
  return (
    <div class="columns">
      {charts.map(([title, lines, format]) => (
        <Panel key={title} title={title}>
          <Chart title={title} times={times} lines={lines} format={format} />
        </Panel>
      ))}
    </div>
  );
}
