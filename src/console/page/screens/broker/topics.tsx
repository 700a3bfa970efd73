import { useState } from 'preact/hooks';
import { count } from '../../data/format.js';
import { go, hrefOf } from '../../data/router.js';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { useQuery } from '../../data/use-query.js';
import { Button, TextField } from '../../parts/controls.js';
import { Dialog } from '../../parts/dialog.js';
import { Failure, PageHead, Panel } from '../../parts/layout.js';
import { More, Table } from '../../parts/table.js';
import { TopicPage } from './topic.js';

/** Rows that are drawn at a time: names and numbers of partitions come in one reply. */
const WINDOW = 100;

export function TopicsPage({ instance, rest: [topic] }: ScreenProps) {
  return topic === undefined ? (
    <TopicList instance={instance} />
  ) : (
    <TopicPage key={topic} instance={instance} topic={topic} />
  );
}

function TopicList({ instance }: { readonly instance: Instance }) {
  const [search, setSearch] = useState('');
  const [shown, setShown] = useState(WINDOW);
  const [isAdding, setAdding] = useState(false);
  const topics = useQuery('topics', (signal) => instance.get<Record<string, number>>('/topics', { signal }));
  const { service, name } = instance.unlocked;
  const all = Object.entries(topics.data ?? {})
    .filter(([topic]) => topic.includes(search))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <>
      <PageHead title="Topics">
        <Button onClick={topics.refresh}>Refresh</Button>
        {instance.mayChange ? (
          <Button kind="primary" onClick={() => setAdding(true)}>
            New topic
          </Button>
        ) : null}
      </PageHead>
      <div class="filters">
        <TextField label="Name holds" value={search} onChange={setSearch} isMono />
      </div>
      <Panel
        isFlush
        foot={
          <More
            shown={Math.min(shown, all.length)}
            hasMore={all.length > shown}
            isBusy={topics.isBusy}
            error={topics.error}
            onMore={() => setShown(shown + WINDOW)}
            what="topics"
          />
        }
      >
        <Table
          label="Topics"
          columns={[
            {
              title: 'Topic',
              cell: ([topic]) => (
                <a class="mono" href={hrefOf([service, name, 'topics', topic])}>
                  {topic}
                </a>
              ),
            },
            { title: 'Partitions', cell: ([, partitions]) => count(partitions), isNumber: true },
          ]}
          rows={all.slice(0, shown)}
          keyOf={([topic]) => topic}
          empty="No topic fits."
          isBusy={topics.isFirst}
        />
      </Panel>
      {isAdding ? (
        <NewTopic
          instance={instance}
          onClose={() => setAdding(false)}
          onDone={(topic) => go([service, name, 'topics', topic])}
        />
      ) : null}
    </>
  );
}

interface NewProps {
  readonly instance: Instance;
  readonly onClose: () => void;
  readonly onDone: (topic: string) => void;
}

function NewTopic({ instance, onClose, onDone }: NewProps) {
  const [topic, setTopic] = useState('');
  const [partitions, setPartitions] = useState('3');
  const [error, setError] = useState<Error>();
  const save = async () => {
    setError(undefined);
    try {
      const body = { partitions: Number(partitions) };
      await instance.call(`/topics/${encodeURIComponent(topic)}`, { method: 'POST', body });
      onDone(topic);
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <Dialog
      title="New topic"
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" onClick={save} isDisabled={topic === ''}>
            Make
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      <TextField label="Name" value={topic} onChange={setTopic} isMono isRequired />
      <TextField label="Partitions" type="number" value={partitions} onChange={setPartitions} isRequired />
      <Failure error={error} />
    </Dialog>
  );
}
