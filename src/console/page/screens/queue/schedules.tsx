import { useState } from 'preact/hooks';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { useQuery } from '../../data/use-query.js';
import { Button } from '../../parts/controls.js';
import { Confirm } from '../../parts/dialog.js';
import { Badge, Failure, Notice, PageHead, Panel } from '../../parts/layout.js';
import { type Column, Table } from '../../parts/table.js';
import { Time } from '../../parts/time.js';
import { useAction } from '../../parts/use-action.js';
import { ScheduleForm } from './schedule-form.js';
import type { Schedule } from './types.js';

const POLL_MS = 10_000;

const pathOf = (id: string) => `/v2/schedules/${encodeURIComponent(id)}`;

export function SchedulesPage({ instance }: ScreenProps) {
  const [isAdding, setAdding] = useState(false);
  const [doomed, setDoomed] = useState<string>();
  const [outcome, run] = useAction();
  const list = useQuery(
    'schedules',
    (signal) => instance.get<Schedule[]>('/v2/schedules', { signal }),
    POLL_MS,
  );
  const act = (method: string, path: string, done: string) => () =>
    run(async () => {
      await instance.call(path, { method });
      list.refresh();
      return done;
    });
  return (
    <>
      <PageHead title="Schedules">
        <Button onClick={list.refresh}>Refresh</Button>
        {instance.mayChange ? (
          <Button kind="primary" onClick={() => setAdding(true)}>
            New schedule
          </Button>
        ) : null}
      </PageHead>
      <Failure error={list.error} />
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      <Panel isFlush>
        <Table
          label="Schedules"
          columns={[...COLUMNS, ...(instance.mayChange ? [actions(act, setDoomed)] : [])]}
          rows={list.data ?? []}
          keyOf={({ scheduleId }) => scheduleId}
          empty="There is no schedule."
          isBusy={list.isFirst}
        />
      </Panel>
      {isAdding ? (
        <Adding instance={instance} onClose={() => setAdding(false)} onDone={list.refresh} />
      ) : null}
      {doomed === undefined ? null : (
        <Confirm
          title="Delete the schedule"
          action="Delete"
          isDangerous
          onClose={() => setDoomed(undefined)}
          onConfirm={act('DELETE', pathOf(doomed), 'It is deleted.')}
        >
          <p>
            <code>{doomed}</code> makes no more messages; those that it made are delivered.
          </p>
        </Confirm>
      )}
    </>
  );
}

const COLUMNS: Column<Schedule>[] = [
  { title: 'Schedule', cell: ({ scheduleId }) => <code>{scheduleId}</code> },
  { title: 'Times', cell: ({ cron }) => <code class="once">{cron}</code> },
  { title: 'To', cell: ({ destination, method }) => `${method} ${destination}`, isCut: true },
  {
    title: 'State',
    cell: ({ isPaused }) => <Badge tone={isPaused ? 'warn' : 'good'}>{isPaused ? 'paused' : 'on'}</Badge>,
  },
  { title: 'Last', cell: ({ lastScheduleTime }) => <Time ms={lastScheduleTime} /> },
  {
    title: 'Next',
    cell: ({ nextScheduleTime, isPaused }) => <Time ms={isPaused ? undefined : nextScheduleTime} />,
  },
];

type Act = (method: string, path: string, done: string) => () => Promise<void>;

const actions = (act: Act, onDelete: (id: string) => void): Column<Schedule> => ({
  title: '·Actions',
  cell: ({ scheduleId, isPaused }) => {
    const path = pathOf(scheduleId);
    const [verb, done] = isPaused
      ? (['resume', 'It goes on.'] as const)
      : (['pause', 'It is paused.'] as const);
    return (
      <div class="actions">
        <Button
          isSmall
          label={`Run now ${scheduleId}`}
          onClick={act('POST', `${path}/run`, 'Its message is published.')}
        >
          Run now
        </Button>
        <Button isSmall label={`${verb} ${scheduleId}`} onClick={act('POST', `${path}/${verb}`, done)}>
          {isPaused ? 'Resume' : 'Pause'}
        </Button>
        <Button isSmall kind="danger" label={`Delete ${scheduleId}`} onClick={() => onDelete(scheduleId)}>
          Delete
        </Button>
      </div>
    );
  },
});

interface AddingProps {
  readonly instance: Instance;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function Adding({ instance, onClose, onDone }: AddingProps) {
  const done = () => {
    onDone();
    onClose();
  };
  return <ScheduleForm instance={instance} onClose={onClose} onDone={done} />;
}
