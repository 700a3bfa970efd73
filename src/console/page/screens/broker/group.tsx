import { useMemo, useRef, useState } from 'preact/hooks';
import { count } from '../../data/format.js';
import { hrefOf } from '../../data/router.js';
import type { Instance } from '../../data/session.js';
import { useQuery } from '../../data/use-query.js';
import { Chart } from '../../parts/chart.js';
import { Button, SelectField, TextField } from '../../parts/controls.js';
import { Confirm } from '../../parts/dialog.js';
import { Empty, Failure, Notice, PageHead, Panel } from '../../parts/layout.js';
import { Table } from '../../parts/table.js';
import { useAction } from '../../parts/use-action.js';

interface Lag {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly end: number;
  readonly lag: number;
}

interface Consumers {
  readonly name: string;
  readonly instances: readonly {
    readonly name: string;
    readonly topics: readonly { readonly topic: string; readonly partitions: readonly number[] }[];
  }[];
}

const POLL_MS = 5_000;
/** 15 minutes of looks. */
const KEPT = 180;

interface Moment {
  readonly at: number;
  readonly lag: number;
}

/** How far a group is behind, partition by partition and as long as one looks; and where it is to go on. */
export function GroupPage({ instance, group }: { readonly instance: Instance; readonly group: string }) {
  const { service, name } = instance.unlocked;
  const moments = useRef<readonly Moment[]>([]);
  const lags = useQuery(
    `lag ${group}`,
    async (signal) => {
      const found = await instance.get<Lag[]>(`/lag/${encodeURIComponent(group)}`, { signal });
      const lag = found.reduce((sum, each) => sum + each.lag, 0);
      moments.current = [...moments.current, { at: Date.now() / 1_000, lag }].slice(-KEPT);
      return found;
    },
    POLL_MS,
  );
  const instances = useQuery(
    `consumers ${group}`,
    async (signal) => {
      const all = await instance.get<Consumers[]>('/consumers', { signal });
      return all.find((each) => each.name === group)?.instances ?? [];
    },
    POLL_MS,
  );
  const kept = moments.current;
  const times = useMemo(() => kept.map(({ at }) => at), [kept]);
  const lines = useMemo(() => [{ label: 'lag', colour: 3, points: kept.map(({ lag }) => lag) }], [kept]);
  return (
    <>
      <PageHead title={group}>
        <a class="button" href={hrefOf([service, name, 'groups'])}>
          All groups
        </a>
      </PageHead>
      <Failure error={lags.error ?? instances.error} />
      <div class="columns">
        <Panel title="Lag since this page is open">
          <Chart title="Lag" times={times} lines={lines} format={(value) => count(Math.round(value))} />
        </Panel>
        <Panel title="Instances of this gateway" isFlush>
          <Table
            label="Instances"
            columns={[
              { title: 'Instance', cell: (each) => <code>{each.name}</code> },
              {
                title: 'Partitions',
                cell: ({ topics }) =>
                  topics.map(({ topic, partitions }) => `${topic}: ${partitions.join(', ')}`).join('; '),
              },
            ]}
            rows={instances.data ?? []}
            keyOf={(each) => each.name}
            empty="None reads over HTTP at present."
            isBusy={instances.isFirst}
          />
        </Panel>
      </div>
      <Panel title="Partitions" isFlush>
        <Table
          label="Lag by partition"
          columns={[
            { title: 'Topic', cell: ({ topic }) => <code>{topic}</code> },
            { title: 'Partition', cell: ({ partition }) => partition, isNumber: true },
            { title: 'Next', cell: ({ offset }) => count(offset), isNumber: true },
            { title: 'End', cell: ({ end }) => count(end), isNumber: true },
            { title: 'Lag', cell: ({ lag }) => <strong>{count(lag)}</strong>, isNumber: true },
          ]}
          rows={lags.data ?? []}
          keyOf={({ topic, partition }) => `${topic} ${partition}`}
          empty="It has committed nothing."
          isBusy={lags.isFirst}
        />
      </Panel>
      {instance.mayChange && lags.data !== undefined && lags.data.length > 0 ? (
        <Reset
          instance={instance}
          group={group}
          topics={[...new Set(lags.data.map(({ topic }) => topic))]}
          onDone={lags.refresh}
        />
      ) : null}
      {lags.data?.length === 0 ? <Empty>Without commits there is nothing to set back.</Empty> : null}
    </>
  );
}

interface ResetProps {
  readonly instance: Instance;
  readonly group: string;
  readonly topics: readonly string[];
  readonly onDone: () => void;
}

function Reset({ instance, group, topics, onDone }: ResetProps) {
  const [topic, setTopic] = useState(topics[0] ?? '');
  const [point, setPoint] = useState('earliest');
  const [time, setTime] = useState('');
  const [isAsking, setAsking] = useState(false);
  const [outcome, act] = useAction();
  const reset = () =>
    act(async () => {
      const where = point === 'time' ? { timestamp: new Date(time).getTime() } : { offset: point };
      const body = { topic, ...where };
      await instance.call(`/seek/${encodeURIComponent(group)}`, { method: 'POST', body });
      onDone();
      return 'It goes on there.';
    });
  return (
    <Panel title="Where the group goes on">
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          setAsking(true);
        }}
      >
        <SelectField
          label="Topic"
          value={topic}
          onChange={setTopic}
          options={topics.map((each) => [each, each])}
        />
        <SelectField
          label="At"
          value={point}
          onChange={setPoint}
          options={[
            ['earliest', 'the oldest record'],
            ['latest', 'the end'],
            ['time', 'a time'],
          ]}
        />
        {point === 'time' ? (
          <TextField label="Time" type="datetime-local" value={time} onChange={setTime} isRequired />
        ) : null}
        <Button type="submit" kind="danger">
          Reset
        </Button>
      </form>
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      {isAsking ? (
        <Confirm
          title={`Reset ${group}`}
          action="Reset"
          isDangerous
          onClose={() => setAsking(false)}
          onConfirm={reset}
        >
          <p>Records of {topic} are read again, or passed over. It takes a group without instances.</p>
        </Confirm>
      ) : null}
    </Panel>
  );
}
