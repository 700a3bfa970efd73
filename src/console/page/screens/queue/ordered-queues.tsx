import { useState } from 'preact/hooks';
import { count } from '../../data/format.js';
import { hrefOf } from '../../data/router.js';
import type { ScreenProps } from '../../data/screen.js';
import { useQuery } from '../../data/use-query.js';
import { Button, TextField } from '../../parts/controls.js';
import { Confirm } from '../../parts/dialog.js';
import { Badge, Failure, Notice, PageHead, Panel } from '../../parts/layout.js';
import { type Column, Table } from '../../parts/table.js';
import { useAction } from '../../parts/use-action.js';
import type { OrderedQueue } from './types.js';

const POLL_MS = 5_000;

/** Queues that keep the order: how far behind each is, at once or paused. */
export function OrderedQueuesPage({ instance }: ScreenProps) {
  const [name, setName] = useState('');
  const [parallelism, setParallelism] = useState('1');
  const [doomed, setDoomed] = useState<string>();
  const [outcome, run] = useAction();
  const queues = useQuery(
    'queues',
    (signal) => instance.get<OrderedQueue[]>('/v2/queues', { signal }),
    POLL_MS,
  );
  const change = (path: string, method: string, body: unknown, done: string) =>
    run(async () => {
      await instance.call(`/v2/queues${path}`, { method, body });
      queues.refresh();
      return done;
    });
  const save = (event: Event) => {
    event.preventDefault();
    void change('', 'POST', { queueName: name, parallelism: Number(parallelism) }, `${name} is as you said.`);
  };
  const { service, name: instanceName } = instance.unlocked;
  const columns: Column<OrderedQueue>[] = [
    {
      title: 'Queue',
      cell: (queue) => (
        <a href={hrefOf([service, instanceName, 'log'], { queueName: queue.name })}>{queue.name}</a>
      ),
    },
    { title: 'Lag', cell: ({ lag }) => count(lag), isNumber: true },
    { title: 'At once', cell: (queue) => count(queue.parallelism), isNumber: true },
    {
      title: 'State',
      cell: ({ paused }) => <Badge tone={paused ? 'warn' : 'good'}>{paused ? 'paused' : 'on'}</Badge>,
    },
  ];
  if (instance.mayChange)
    columns.push({
      title: '·Actions',
      cell: (queue) => {
        const verb = queue.paused ? 'resume' : 'pause';
        const path = `/${encodeURIComponent(queue.name)}`;
        return (
          <div class="actions">
            <Button
              isSmall
              label={`${verb} ${queue.name}`}
              onClick={() =>
                change(`${path}/${verb}`, 'POST', undefined, queue.paused ? 'It goes on.' : 'It is paused.')
              }
            >
              {queue.paused ? 'Resume' : 'Pause'}
            </Button>
            <Button
              isSmall
              kind="danger"
              label={`Delete ${queue.name}`}
              onClick={() => setDoomed(queue.name)}
            >
              Delete
            </Button>
          </div>
        );
      },
    });
  return (
    <>
      <PageHead title="Ordered queues">
        <Button onClick={queues.refresh}>Refresh</Button>
      </PageHead>
      <Failure error={queues.error} />
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      <Panel isFlush>
        <Table
          label="Ordered queues"
          columns={columns}
          rows={queues.data ?? []}
          keyOf={(queue) => queue.name}
          empty="There is no ordered queue."
          isBusy={queues.isFirst}
        />
      </Panel>
      {instance.mayChange ? (
        <Panel title="Make or change a queue">
          <form class="filters" onSubmit={save}>
            <TextField label="Name" value={name} onChange={setName} isRequired />
            <TextField
              label="Messages at once"
              type="number"
              value={parallelism}
              onChange={setParallelism}
              isRequired
            />
            <Button type="submit" kind="primary">
              Save
            </Button>
          </form>
        </Panel>
      ) : null}
      {doomed === undefined ? null : (
        <Confirm
          title="Delete the queue"
          action="Delete"
          isDangerous
          onClose={() => setDoomed(undefined)}
          onConfirm={() => change(`/${encodeURIComponent(doomed)}`, 'DELETE', undefined, 'It is deleted.')}
        >
          <p>The messages that wait in {doomed} are cancelled.</p>
        </Confirm>
      )}
    </>
  );
}
