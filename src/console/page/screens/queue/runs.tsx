import { useState } from 'preact/hooks';
import { duration, timestamp } from '../../data/format.js';
import type { ScreenProps } from '../../data/screen.js';
import { usePages } from '../../data/use-pages.js';
import { Code } from '../../parts/code.js';
import { Button, SelectField, TextField } from '../../parts/controls.js';
import { Facts, Notice, PageHead, Panel } from '../../parts/layout.js';
import { type Column, More, Table } from '../../parts/table.js';
import { Time } from '../../parts/time.js';
import { useAction } from '../../parts/use-action.js';
import { StateBadge, TONES } from './state-badge.js';

interface Step {
  readonly stepName?: string;
  readonly stepType?: string;
  readonly messageId: string;
  readonly state: string;
  readonly out?: string;
  readonly createdAt?: number;
  readonly errors?: readonly { readonly error: string; readonly status: number; readonly body: string }[];
}

interface Run {
  readonly workflowRunId: string;
  readonly workflowUrl: string;
  readonly workflowState: string;
  readonly workflowRunCreatedAt: number;
  readonly workflowRunCompletedAt?: number;
  readonly workflowRunResponse?: string;
  readonly dlqId?: string;
  readonly steps: readonly { readonly type: string; readonly steps: readonly Step[] }[];
}

const STATES = ['', 'RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'] as const;

interface Filters {
  readonly state?: string;
  readonly workflowUrl?: string;
  readonly workflowRunId?: string;
}

/** Runs of workflows with their steps; failed ones can go on or begin again. */
export function RunsPage({ instance }: ScreenProps) {
  const [filters, setFilters] = useState<Filters>({});
  const [draft, setDraft] = useState<Filters>({});
  const [openId, setOpenId] = useState<string>();
  const [outcome, act] = useAction();
  const runs = usePages<Run>(JSON.stringify(filters), async (cursor, signal) => {
    const query = { ...filters, cursor };
    const page = await instance.get<{ runs: Run[]; cursor?: string }>('/v2/workflows/logs', {
      query,
      signal,
    });
    return { items: page.runs, cursor: page.cursor };
  });
  const open = runs.items.find(({ workflowRunId }) => workflowRunId === openId);
  const apply = (next: Filters) => {
    setDraft(next);
    setFilters(next);
  };
  const change = (path: string, method: string, done: string) => () =>
    act(async () => {
      await instance.call(path, { method });
      runs.refresh();
      return done;
    });
  const columns: Column<Run>[] = [
    {
      title: 'Run',
      cell: ({ workflowRunId }) => (
        <button type="button" class="link-cell" onClick={() => setOpenId(workflowRunId)}>
          {workflowRunId}
        </button>
      ),
    },
    { title: 'State', cell: ({ workflowState }) => <StateBadge state={workflowState} /> },
    { title: 'Workflow', cell: ({ workflowUrl }) => workflowUrl, isCut: true },
    { title: 'Began', cell: ({ workflowRunCreatedAt }) => <Time ms={workflowRunCreatedAt} /> },
    { title: 'Took', cell: tookOf, isNumber: true },
  ];
  return (
    <>
      <PageHead title="Workflow runs">
        <Button onClick={runs.refresh}>Refresh</Button>
      </PageHead>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          apply(draft);
        }}
      >
        <SelectField
          label="State"
          value={draft.state ?? ''}
          onChange={(state) => apply({ ...draft, state })}
          options={STATES.map((state) => [state, state === '' ? 'all' : state.slice(4).toLowerCase()])}
        />
        <TextField
          label="Workflow URL"
          value={draft.workflowUrl ?? ''}
          onChange={(workflowUrl) => setDraft({ ...draft, workflowUrl })}
          isMono
        />
        <TextField
          label="Run id"
          value={draft.workflowRunId ?? ''}
          onChange={(workflowRunId) => setDraft({ ...draft, workflowRunId })}
          isMono
        />
        <Button type="submit" kind="primary">
          Filter
        </Button>
      </form>
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      <div class={open === undefined ? 'split' : 'split two'}>
        <Panel
          isFlush
          foot={
            <More
              shown={runs.items.length}
              hasMore={runs.hasMore}
              isBusy={runs.isBusy}
              error={runs.error}
              onMore={runs.more}
              what="runs"
            />
          }
        >
          <Table
            label="Workflow runs"
            columns={columns}
            rows={runs.items}
            keyOf={({ workflowRunId }) => workflowRunId}
            openKey={openId}
            empty="No run fits."
            isBusy={runs.isBusy}
          />
        </Panel>
        {open === undefined ? null : (
          <Panel
            title="Run"
            actions={
              <>
                {instance.mayChange && open.workflowState === 'RUN_STARTED' ? (
                  <Button
                    isSmall
                    kind="danger"
                    onClick={change(`/v2/workflows/runs/${open.workflowRunId}`, 'DELETE', 'It is cancelled.')}
                  >
                    Cancel run
                  </Button>
                ) : null}
                {instance.mayChange && open.dlqId !== undefined ? (
                  <>
                    <Button
                      isSmall
                      kind="primary"
                      onClick={change(
                        `/v2/workflows/dlq/resume/${open.dlqId}`,
                        'POST',
                        'It goes on, as a new run.',
                      )}
                    >
                      Resume
                    </Button>
                    <Button
                      isSmall
                      onClick={change(
                        `/v2/workflows/dlq/restart/${open.dlqId}`,
                        'POST',
                        'It begins again, as a new run.',
                      )}
                    >
                      Restart
                    </Button>
                  </>
                ) : null}
                <Button isSmall kind="quiet" onClick={() => setOpenId(undefined)}>
                  Close
                </Button>
              </>
            }
          >
            <RunDetails run={open} />
          </Panel>
        )}
      </div>
    </>
  );
}

function tookOf({ workflowRunCreatedAt, workflowRunCompletedAt }: Run): string {
  if (workflowRunCompletedAt === undefined) return '';
  const ms = workflowRunCompletedAt - workflowRunCreatedAt;
  return ms < 1_000 ? `${ms} ms` : duration(ms / 1_000);
}

function RunDetails({ run }: { readonly run: Run }) {
  const steps = run.steps.flatMap((group) => group.steps.map((step) => ({ step, type: group.type })));
  return (
    <>
      <Facts
        facts={[
          ['Run', <code key="id">{run.workflowRunId}</code>],
          ['Workflow', run.workflowUrl],
          ['Began', timestamp(run.workflowRunCreatedAt)],
          ['Took', tookOf(run)],
        ]}
      />
      <ol class="timeline" aria-label="Steps">
        {steps.map(({ step, type }) => (
          <li key={step.messageId + (step.stepName ?? '')} class={TONES[step.state]}>
            <div class="stack">
              <div class="when">
                <StateBadge state={step.state} />
                <strong>{step.stepName ?? (type === 'next' ? 'next step' : 'step')}</strong>
                <span class="muted">{step.stepType}</span>
                {step.createdAt === undefined ? null : <Time ms={step.createdAt} />}
              </div>
              {(step.errors ?? []).map(({ error, body }) => (
                <Code
                  key={error}
                  title={error}
                  label={`${error} in ${step.messageId}`}
                  text={body}
                  isPretty
                />
              ))}
              {step.out ? (
                <Code title="Result" label={`Result of ${step.messageId}`} text={step.out} isPretty />
              ) : null}
            </div>
          </li>
        ))}
      </ol>
      {run.workflowRunResponse === undefined ? null : (
        <Code title="Result of the run" text={run.workflowRunResponse} isPretty />
      )}
    </>
  );
}
