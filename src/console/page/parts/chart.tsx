import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { repaint } from '../data/theme.js';

export interface Line {
  readonly label: string;
  /** 1 to 5: the colour of the page's palette. */
  readonly colour: number;
  readonly points: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}

const HEIGHT = 190;

function coloursOf(element: Element) {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return { text: read('--muted'), grid: read('--line'), line: (n: number) => read(`--series-${n}`) };
}

function optionsFor(element: HTMLElement, { lines, format }: ChartProps): uPlot.Options {
  const colours = coloursOf(element);
  const axis = {
    stroke: colours.text,
    grid: { stroke: colours.grid, width: 1 },
    ticks: { stroke: colours.grid, width: 1, size: 4 },
    font: '11px system-ui, sans-serif',
  };
  return {
    width: Math.max(200, element.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_chart, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, values: (_chart, ticks) => ticks.map(hourOf) },
      { ...axis, size: 64, values: (_chart, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...lines.map(({ label, colour, points }) => ({
        label,
        stroke: colours.line(colour),
        width: 1.75,
        spanGaps: false,
        // a value between two gaps would not be seen as a line
        points: { show: points.includes(null), size: 5, fill: colours.line(colour) },
      })),
    ],
  };
}

const hourOf = (seconds: number): string =>
  new Date(seconds * 1_000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });

/** Lines over time. uPlot comes with the first chart; the newest values stand in its legend as text. */
export function Chart(props: ChartProps) {
  const { title, times, lines, format } = props;
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const shape = `${lines.map(({ label }) => label).join()} ${repaint.value}`;
  // another number of lines, or other colours, make another chart
  useEffect(() => {
    const target = element.current;
    if (target === null) return;
    let isGone = false;
    const observer = new ResizeObserver(() =>
      chart.current?.setSize({ width: Math.max(200, target.clientWidth), height: HEIGHT }),
    );
    void import('./uplot.js').then(({ Plot }) => {
      if (isGone) return;
      const { times: x, lines: all } = latest.current;
      chart.current = new Plot(optionsFor(target, latest.current), dataOf(x, all), target);
      observer.observe(target);
    });
    return () => {
      isGone = true;
      observer.disconnect();
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [shape]);
  useEffect(() => chart.current?.setData(dataOf(times, lines)), [times, lines]);
  return (
    <figure class="stack" aria-label={title}>
      <div class="legend">
        {lines.map(({ label, colour, points }) => (
          <span key={label} class={`s${colour}`}>
            {label} {lastOf(points, format)}
          </span>
        ))}
      </div>
      <div class="chart" ref={element} aria-hidden="true" />
    </figure>
  );
}

function dataOf(times: readonly number[], lines: readonly Line[]): uPlot.AlignedData {
  return [times as number[], ...lines.map(({ points }) => points as (number | null)[])];
}

function lastOf(points: readonly (number | null)[], format: (value: number) => string): string {
  const last = points.findLast((point) => point !== null);
  return last == null ? '–' : format(last);
}
