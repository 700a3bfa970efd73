import { useState } from 'preact/hooks';
import { count } from '../../data/format.js';
import { hrefOf } from '../../data/router.js';
import type { Instance } from '../../data/session.js';
import { useQuery } from '../../data/use-query.js';
import { Button } from '../../parts/controls.js';
import { Badge, Facts, Failure, PageHead, Panel } from '../../parts/layout.js';
import { Table } from '../../parts/table.js';
import { Produce } from './produce.js';
import { Records } from './records.js';
import { offsetsAt } from './topic-offsets.js';

interface Described {
  readonly partitions: readonly {
    readonly partition: number;
    readonly leader: number;
    readonly replicas: readonly number[];
    readonly inSync: readonly number[];
  }[];
  readonly config: Readonly<Record<string, string>>;
}

interface TopicView extends Described {
  readonly first: readonly number[];
  readonly end: readonly number[];
  /** When the ends were asked for, ms. */
  readonly at: number;
}

const POLL_MS = 5_000;

interface Props {
  readonly instance: Instance;
  readonly topic: string;
}

/** One topic: its partitions, its records, and a way to write one. */
export function TopicPage({ instance, topic }: Props) {
  const { service, name } = instance.unlocked;
  const described = useQuery(`topic ${topic}`, (signal) =>
    instance.get<Described>(`/topics/${encodeURIComponent(topic)}`, { signal }),
  );
  const partitions = described.data?.partitions.length ?? 0;
  const view = useQuery<TopicView | undefined>(
    `offsets ${topic} ${partitions}`,
    async (signal) => {
      if (described.data === undefined) return undefined;
      const [first, end] = await Promise.all([
        offsetsAt(instance, topic, partitions, 'earliest', signal),
        offsetsAt(instance, topic, partitions, 'latest', signal),
      ]);
      return { ...described.data, first, end, at: Date.now() };
    },
    POLL_MS,
  );
  const [isProducing, setProducing] = useState(false);
  return (
    <>
      <PageHead title={topic}>
        <a class="button" href={hrefOf([service, name, 'topics'])}>
          All topics
        </a>
        {instance.mayChange ? (
          <Button kind="primary" onClick={() => setProducing(true)}>
            Produce
          </Button>
        ) : null}
      </PageHead>
      <Failure error={described.error ?? view.error} />
      {view.data === undefined ? null : <Partitions view={view.data} />}
      {view.data === undefined ? null : (
        <Records instance={instance} topic={topic} first={view.data.first} end={view.data.end} />
      )}
      {isProducing ? (
        <Produce
          instance={instance}
          topic={topic}
          partitions={partitions}
          onClose={() => {
            setProducing(false);
            view.refresh();
          }}
        />
      ) : null}
    </>
  );
}

function Partitions({ view }: { readonly view: TopicView }) {
  const records = view.end.reduce((sum, end, i) => sum + end - (view.first[i] ?? 0), 0);
  return (
    <Panel title={`${view.partitions.length} partitions, ${count(records)} records`} isFlush>
      <Table
        label="Partitions"
        columns={[
          { title: 'Partition', cell: ({ partition }) => partition, isNumber: true },
          { title: 'First', cell: ({ partition }) => count(view.first[partition] ?? 0), isNumber: true },
          { title: 'End', cell: ({ partition }) => count(view.end[partition] ?? 0), isNumber: true },
          {
            title: 'Records',
            cell: ({ partition }) => count((view.end[partition] ?? 0) - (view.first[partition] ?? 0)),
            isNumber: true,
          },
          {
            title: 'Leader',
            cell: ({ leader }) => (leader < 0 ? <Badge tone="bad">none</Badge> : leader),
            isNumber: true,
          },
          {
            title: 'In sync',
            cell: ({ inSync, replicas }) =>
              inSync.length < replicas.length ? (
                <Badge tone="warn">{`${inSync.length} of ${replicas.length}`}</Badge>
              ) : (
                `${inSync.length} of ${replicas.length}`
              ),
          },
        ]}
        rows={view.partitions}
        keyOf={({ partition }) => String(partition)}
      />
      {Object.keys(view.config).length === 0 ? null : (
        <div class="panel-body">
          <Facts facts={Object.entries(view.config)} />
        </div>
      )}
    </Panel>
  );
}
