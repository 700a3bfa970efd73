import { useState } from 'preact/hooks';
import { count } from '../../data/format.js';
import type { ScreenProps } from '../../data/screen.js';
import { useQuery } from '../../data/use-query.js';
import { Button, TextField } from '../../parts/controls.js';
import { Badge, Failure, Notice, PageHead, Panel, type Tone } from '../../parts/layout.js';
import { type Column, Table } from '../../parts/table.js';
import { Time } from '../../parts/time.js';
import { useAction } from '../../parts/use-action.js';
import type { Destination, FlowControl } from './types.js';

const POLL_MS = 5_000;
const CIRCUITS: Readonly<Record<Destination['circuit'], Tone>> = {
  closed: 'good',
  'half-open': 'warn',
  open: 'bad',
};

const DESTINATIONS: readonly Column<Destination>[] = [
  { title: 'Destination', cell: ({ destination }) => <code>{destination}</code> },
  { title: 'Circuit', cell: ({ circuit }) => <Badge tone={CIRCUITS[circuit]}>{circuit}</Badge> },
  { title: 'Waited in vain', cell: ({ failures }) => count(failures), isNumber: true },
  { title: 'Under way', cell: ({ active, waiting }) => count(active + waiting), isNumber: true },
  { title: 'Put off', cell: ({ turnedAway }) => count(turnedAway), isNumber: true },
  { title: 'Next probe', cell: ({ nextProbeAt }) => <Time ms={nextProbeAt} /> },
];

/** What holds messages back: limits that senders asked for, and destinations that do not answer. */
export function FlowPage({ instance }: ScreenProps) {
  const [search, setSearch] = useState('');
  const [outcome, run] = useAction();
  const flows = useQuery(
    `flows ${search}`,
    (signal) => instance.get<FlowControl[]>('/v2/flowControl', { query: { search }, signal }),
    POLL_MS,
  );
  const places = useQuery(
    'destinations',
    (signal) => instance.get<Destination[]>('/v2/destinations', { signal }),
    POLL_MS,
  );
  const columns: Column<FlowControl>[] = [
    { title: 'Key', cell: ({ flowControlKey }) => <code>{flowControlKey}</code> },
    { title: 'Waiting', cell: ({ waitListSize }) => count(waitListSize), isNumber: true },
    {
      title: 'At once',
      cell: ({ parallelismCount, parallelismMax }) =>
        `${count(parallelismCount)} of ${parallelismMax ?? '∞'}`,
      isNumber: true,
    },
    {
      title: 'Rate',
      cell: ({ rateCount, rateMax, ratePeriod }) =>
        rateMax === undefined ? '' : `${count(rateCount)} of ${count(rateMax)} in ${ratePeriod} s`,
      isNumber: true,
    },
    {
      title: 'State',
      cell: ({ isPaused }) => <Badge tone={isPaused ? 'warn' : 'good'}>{isPaused ? 'paused' : 'on'}</Badge>,
    },
  ];
  if (instance.mayChange)
    columns.push({
      title: '·Actions',
      cell: ({ flowControlKey, isPaused }) => (
        <Button
          isSmall
          label={`${isPaused ? 'Resume' : 'Pause'} ${flowControlKey}`}
          onClick={() =>
            run(async () => {
              const verb = isPaused ? 'resume' : 'pause';
              await instance.call(`/v2/flowControl/${encodeURIComponent(flowControlKey)}/${verb}`, {
                method: 'POST',
              });
              flows.refresh();
              return isPaused ? 'It goes on.' : 'It is paused.';
            })
          }
        >
          {isPaused ? 'Resume' : 'Pause'}
        </Button>
      ),
    });
  return (
    <>
      <PageHead title="Flow control" />
      <Failure error={flows.error ?? places.error} />
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      <div class="filters">
        <TextField label="Key begins with" value={search} onChange={setSearch} isMono />
      </div>
      <Panel title="Keys" isFlush>
        <Table
          label="Flow-control keys"
          columns={columns}
          rows={flows.data ?? []}
          keyOf={({ flowControlKey }) => flowControlKey}
          empty="No message has a flow-control key."
          isBusy={flows.isFirst}
        />
      </Panel>
      <Panel title="Destinations, as one process sees them" isFlush>
        <Table
          label="Destinations"
          columns={DESTINATIONS}
          rows={places.data ?? []}
          keyOf={({ destination }) => destination}
          empty="Nothing is under way, and no circuit is open."
          isBusy={places.isFirst}
        />
      </Panel>
    </>
  );
}
