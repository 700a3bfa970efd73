import { useState } from 'preact/hooks';
import { timestamp } from '../../data/format.js';
import type { Instance } from '../../data/session.js';
import { usePages } from '../../data/use-pages.js';
import { Code } from '../../parts/code.js';
import { Button, SelectField, TextField } from '../../parts/controls.js';
import { Facts, Panel } from '../../parts/layout.js';
import { type Column, More, Table } from '../../parts/table.js';
import { Time } from '../../parts/time.js';
import { offsetsAt } from './topic-offsets.js';

interface KafkaRecord {
  readonly partition: number;
  readonly offset: number;
  readonly timestamp: number;
  readonly key: string;
  readonly value: string;
  readonly headers: readonly { readonly key: string; readonly value: string }[];
}

/** Records of one window. */
const WINDOW = 50;

interface Look {
  readonly partition: number;
  readonly from: 'newest' | 'oldest' | 'offset' | 'time';
  readonly offset: string;
  readonly time: string;
}

interface Props {
  readonly instance: Instance;
  readonly topic: string;
  /** By partition. */
  readonly first: readonly number[];
  readonly end: readonly number[];
}

/** Where a look begins. */
async function startOf(
  { instance, topic, first, end }: Props,
  look: Look,
  signal: AbortSignal,
): Promise<number> {
  const [low, high] = [first[look.partition] ?? 0, end[look.partition] ?? 0];
  if (look.from === 'oldest') return low;
  if (look.from === 'newest') return Math.max(low, high - WINDOW);
  if (look.from === 'offset') return Math.max(low, Number(look.offset) || 0);
  const at = new Date(look.time).getTime();
  const offsets = await offsetsAt(instance, topic, end.length, Number.isNaN(at) ? 'earliest' : at, signal);
  return offsets[look.partition] ?? high;
}

async function recordsFrom(
  { instance, topic }: Props,
  partition: number,
  offset: number,
  signal: AbortSignal,
) {
  // an empty reply comes after the timeout: there is nothing to wait for
  const body = { topic, partition, offset, limit: WINDOW, timeout: 500 };
  return instance.get<KafkaRecord[]>('/fetch', { method: 'POST', body, signal });
}

/** The records of one partition, from an offset or a time on. */
export function Records(props: Props) {
  const { end } = props;
  const busiest = end.reduce((best, offset, i) => (offset > (end[best] ?? 0) ? i : best), 0);
  const [look, setLook] = useState<Look>({ partition: busiest, from: 'newest', offset: '0', time: '' });
  const [wanted, setWanted] = useState(look);
  const [turn, setTurn] = useState(0);
  const [open, setOpen] = useState<KafkaRecord>();
  const key = `${props.topic} ${JSON.stringify(wanted)} ${turn}`;
  const pages = usePages<KafkaRecord>(key, async (cursor, signal) => {
    const offset = cursor === undefined ? await startOf(props, wanted, signal) : Number(cursor);
    if (offset >= (end[wanted.partition] ?? 0)) return { items: [] };
    const items = await recordsFrom(props, wanted.partition, offset, signal);
    const last = items.at(-1);
    const next = last === undefined ? undefined : last.offset + 1;
    const hasMore = next !== undefined && next < (end[wanted.partition] ?? 0);
    return { items, cursor: hasMore ? String(next) : undefined };
  });
  const rows = wanted.from === 'newest' && !pages.hasMore ? [...pages.items].reverse() : pages.items;
  return (
    <>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          setWanted(look);
          setTurn(turn + 1);
        }}
      >
        <SelectField
          label="Partition"
          value={String(look.partition)}
          onChange={(partition) => setLook({ ...look, partition: Number(partition) })}
          options={end.map((_, partition) => [String(partition), String(partition)])}
        />
        <SelectField
          label="From"
          value={look.from}
          onChange={(from) => setLook({ ...look, from: from as Look['from'] })}
          options={[
            ['newest', 'the newest'],
            ['oldest', 'the oldest'],
            ['offset', 'an offset'],
            ['time', 'a time'],
          ]}
        />
        {look.from === 'offset' ? (
          <TextField
            label="Offset"
            type="number"
            value={look.offset}
            onChange={(offset) => setLook({ ...look, offset })}
          />
        ) : null}
        {look.from === 'time' ? (
          <TextField
            label="Time"
            type="datetime-local"
            value={look.time}
            onChange={(time) => setLook({ ...look, time })}
          />
        ) : null}
        <Button type="submit" kind="primary">
          Look
        </Button>
      </form>
      <div class={open === undefined ? 'split' : 'split two'}>
        <Panel
          title="Records"
          isFlush
          foot={
            <More
              shown={pages.items.length}
              hasMore={pages.hasMore}
              isBusy={pages.isBusy}
              error={pages.error}
              onMore={pages.more}
              what="records"
            />
          }
        >
          <Table
            label="Records"
            columns={columns(setOpen)}
            rows={rows}
            keyOf={({ partition, offset }) => `${partition} ${offset}`}
            openKey={open && `${open.partition} ${open.offset}`}
            empty="There is no record here."
            isBusy={pages.isBusy}
          />
        </Panel>
        {open === undefined ? null : <RecordPanel record={open} onClose={() => setOpen(undefined)} />}
      </div>
    </>
  );
}

const columns = (onOpen: (record: KafkaRecord) => void): Column<KafkaRecord>[] => [
  {
    title: 'Offset',
    cell: (record) => (
      <button type="button" class="link-cell" onClick={() => onOpen(record)}>
        {record.offset}
      </button>
    ),
    isNumber: true,
  },
  { title: 'When', cell: ({ timestamp: at }) => <Time ms={at} /> },
  { title: 'Key', cell: ({ key }) => <code>{key}</code>, isCut: true },
  { title: 'Value', cell: ({ value }) => <code>{value.slice(0, 300)}</code>, isCut: true },
];

function RecordPanel({ record, onClose }: { readonly record: KafkaRecord; readonly onClose: () => void }) {
  const headers = record.headers.map(({ key, value }) => `${key}: ${value}`).join('\n');
  return (
    <Panel
      title="Record"
      actions={
        <Button isSmall kind="quiet" onClick={onClose}>
          Close
        </Button>
      }
    >
      <Facts
        facts={[
          ['Partition', String(record.partition)],
          ['Offset', String(record.offset)],
          ['Time', timestamp(record.timestamp)],
          ['Key', record.key === '' ? undefined : <code key="key">{record.key}</code>],
        ]}
      />
      {headers === '' ? null : <Code title="Headers" text={headers} />}
      <Code title="Value" text={record.value} isPretty />
    </Panel>
  );
}
