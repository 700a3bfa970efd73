import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { count } from '../../data/format.js';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { repaint } from '../../data/theme.js';
import { Button, SelectField } from '../../parts/controls.js';
import { Empty, Failure, PageHead, Panel } from '../../parts/layout.js';
import { RecordPanel } from './record-panel.js';
import type { VectorRecord } from './types.js';
import { ask, useInfo, useNamespace } from './use-index.js';

/** Records of the sample, and how many of them one request brings: 1,536 components are 15 kB each. */
const SAMPLE = 1_000;
const PAGE = 100;
const COLOURS = 5;

interface Sample {
  readonly records: readonly VectorRecord[];
  /** x and y of each in turn. */
  readonly places: Float32Array;
}

async function sampleOf(instance: Instance, namespace: string): Promise<readonly VectorRecord[]> {
  const records: VectorRecord[] = [];
  let cursor = '0';
  while (records.length < SAMPLE && cursor !== '') {
    const body = { cursor, limit: PAGE, includeVectors: true, includeMetadata: true };
    const page = await ask<{ nextCursor: string; vectors: VectorRecord[] }>(
      instance,
      '/range',
      namespace,
      body,
    );
    records.push(...page.vectors.filter(({ vector }) => vector !== undefined));
    cursor = page.nextCursor;
  }
  return records;
}

/** In a worker, so that the page answers meanwhile. */
function projected(records: readonly VectorRecord[]): Promise<Float32Array> {
  const worker = new Worker(new URL('./projection-worker.ts', import.meta.url), { type: 'module' });
  return new Promise<Float32Array>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Float32Array>) => resolve(data);
    worker.onerror = () => reject(new Error('The map could not be computed.'));
    worker.postMessage(records.map(({ vector }) => Float32Array.from(vector ?? [])));
  }).finally(() => worker.terminate());
}

/** The fields of the metadata by which points can be told apart. */
function fieldsOf(records: readonly VectorRecord[]): string[] {
  return [...new Set(records.flatMap(({ metadata }) => Object.keys(metadata ?? {})))].sort();
}

/** A sample of the records on a plane: near to each other what is near in the index, as far as two directions can show it. */
export function MapPage({ instance }: ScreenProps) {
  const info = useInfo(instance);
  const { namespace, field } = useNamespace(info.data);
  const [sample, setSample] = useState<Sample>();
  const [error, setError] = useState<Error>();
  const [by, setBy] = useState('');
  const [open, setOpen] = useState<string>();
  const draw = async () => {
    setError(undefined);
    try {
      const records = await sampleOf(instance, namespace);
      setSample({ records, places: await projected(records) });
    } catch (problem) {
      setError(problem as Error);
    }
  };
  const fields = useMemo(() => fieldsOf(sample?.records ?? []), [sample]);
  return (
    <>
      <PageHead title="Map" />
      <Panel>
        <div class="filters">
          {field}
          <SelectField
            label="Coloured by"
            value={by}
            onChange={setBy}
            options={[['', 'nothing'], ...fields.map((each) => [each, each] as const)]}
          />
          <Button kind="primary" onClick={draw}>
            Draw
          </Button>
        </div>
        <p class="muted">
          The first {count(SAMPLE)} records at most, along the two directions in which they differ most.
        </p>
        <Failure error={error} />
      </Panel>
      {sample === undefined ? (
        <Empty>Not drawn yet.</Empty>
      ) : (
        <div class={open === undefined ? 'split' : 'split two'}>
          <Plot sample={sample} by={by} onOpen={setOpen} />
          {open === undefined ? null : (
            <RecordPanel
              key={open}
              id={open}
              namespace={namespace}
              instance={instance}
              onClose={() => setOpen(undefined)}
            />
          )}
        </div>
      )}
    </>
  );
}

const HEIGHT = 460;
const MARGIN = 16;
/** A click finds what is within so many pixels. */
const REACH = 12;

interface PlotProps {
  readonly sample: Sample;
  readonly by: string;
  readonly onOpen: (id: string) => void;
}

/** From the plane to pixels. */
function scaled(places: Float32Array, width: number): Float32Array {
  const [xs, ys] = [0, 1].map((odd) => places.filter((_, i) => i % 2 === odd)) as [
    Float32Array,
    Float32Array,
  ];
  const scale = (values: Float32Array, length: number) => {
    const low = values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
    const high = values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
    const range = high - low || 1;
    return (value: number) => MARGIN + ((value - low) / range) * (length - 2 * MARGIN);
  };
  const [toX, toY] = [scale(xs, width), scale(ys, HEIGHT)];
  return places.map((value, i) => (i % 2 === 0 ? toX(value) : HEIGHT - toY(value)));
}

function Plot({ sample, by, onOpen }: PlotProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const pixels = useRef<Float32Array>(new Float32Array());
  const values = useMemo(() => groupsOf(sample.records, by), [sample, by]);
  const colours = repaint.value;
  useEffect(() => {
    const target = canvas.current;
    const context = target?.getContext('2d');
    if (target == null || context == null) return;
    const ratio = devicePixelRatio;
    const width = target.clientWidth;
    target.width = width * ratio;
    target.height = HEIGHT * ratio;
    context.scale(ratio, ratio);
    pixels.current = scaled(sample.places, width);
    const style = getComputedStyle(target);
    const palette = Array.from({ length: COLOURS }, (_, i) =>
      style.getPropertyValue(`--series-${i + 1}`).trim(),
    );
    context.globalAlpha = 0.75;
    sample.records.forEach((_, i) => {
      context.fillStyle = palette[values.of[i] ?? 0] ?? '#888';
      context.beginPath();
      context.arc(pixels.current[2 * i] as number, pixels.current[2 * i + 1] as number, 3.2, 0, 2 * Math.PI);
      context.fill();
    });
  }, [sample, values, colours]);
  const click = (event: MouseEvent) => {
    const [x, y] = [event.offsetX, event.offsetY];
    let [best, distance] = [-1, REACH * REACH];
    for (let i = 0; i < sample.records.length; i += 1) {
      const near = (pixels.current[2 * i] as number) - x;
      const high = (pixels.current[2 * i + 1] as number) - y;
      const square = near * near + high * high;
      if (square < distance) [best, distance] = [i, square];
    }
    const found = sample.records[best];
    if (found !== undefined) onOpen(found.id);
  };
  return (
    <Panel title={`${count(sample.records.length)} records`}>
      {values.names.length > 1 ? (
        <div class="legend">
          {values.names.map((name, i) => (
            <span key={name} class={`s${i + 1}`}>
              {name}
            </span>
          ))}
        </div>
      ) : null}
      <canvas class="map" ref={canvas} onClick={click}>
        A map of {sample.records.length} records.
      </canvas>
      <p class="muted">A click on a point opens its record; by keys they are opened in Records and Search.</p>
    </Panel>
  );
}

interface Groups {
  readonly names: readonly string[];
  /** By record: which of the names. */
  readonly of: readonly number[];
}

/** The most frequent values of a field each get a colour, the others share the last. */
function groupsOf(records: readonly VectorRecord[], by: string): Groups {
  if (by === '') return { names: [], of: records.map(() => 0) };
  const texts = records.map(({ metadata }) => String(metadata?.[by] ?? '–'));
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  const frequent = [...counts].sort((a, b) => b[1] - a[1]).map(([text]) => text);
  const hasOthers = frequent.length > COLOURS;
  const names = hasOthers ? [...frequent.slice(0, COLOURS - 1), 'others'] : frequent;
  const of = texts.map((text) => {
    const at = names.indexOf(text);
    return at < 0 ? COLOURS - 1 : at;
  });
  return { names, of };
}
