import { useState } from 'preact/hooks';
import { textOf } from '../../data/base64.js';
import { clock } from '../../data/format.js';
import { place, replaceQuery } from '../../data/router.js';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { usePages } from '../../data/use-pages.js';
import { useQuery } from '../../data/use-query.js';
import { Code } from '../../parts/code.js';
import { Button, SelectField, TextField } from '../../parts/controls.js';
import { Empty, Failure, Notice, PageHead, Panel } from '../../parts/layout.js';
import { type Column, More, Table } from '../../parts/table.js';
import { Time } from '../../parts/time.js';
import { useAction } from '../../parts/use-action.js';
import { MessageFacts } from './message-facts.js';
import { StateBadge, TONES } from './state-badge.js';
import type { LogEntry } from './types.js';

const STATES = ['', 'CREATED', 'ACTIVE', 'RETRY', 'ERROR', 'DELIVERED', 'FAILED', 'CANCELED'] as const;
/** A window of the log. */
const COUNT = 50;

const FILTERS = ['state', 'url', 'messageId', 'queueName', 'topicName', 'label'] as const;
type Filters = Partial<Record<(typeof FILTERS)[number], string>>;

const read = (): Filters =>
  Object.fromEntries(
    FILTERS.flatMap((name) => {
      const value = place.value.query.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );

/** What happened to messages, newest first; a message's own story beside it. */
export function LogPage({ instance }: ScreenProps) {
  const [filters, setFilters] = useState<Filters>(read);
  const [draft, setDraft] = useState<Filters>(filters);
  const open = place.value.query.get('open') ?? undefined;
  const log = usePages<LogEntry>(JSON.stringify(filters), async (cursor, signal) => {
    const query = { ...filters, cursor, count: COUNT };
    const { events, cursor: next } = await instance.get<{ events: LogEntry[]; cursor?: string }>(
      '/v2/events',
      {
        query,
        signal,
      },
    );
    return { items: events, cursor: next };
  });
  const show = (next: Filters, id?: string) => replaceQuery({ ...next, open: id });
  const apply = (next: Filters) => {
    setDraft(next);
    setFilters(next);
    show(next, open);
  };
  const set = (name: keyof Filters) => (value: string) => setDraft({ ...draft, [name]: value });
  const columns: Column<LogEntry>[] = [
    { title: 'When', cell: ({ time }) => <Time ms={time} /> },
    { title: 'State', cell: ({ state }) => <StateBadge state={state} /> },
    {
      title: 'Message',
      cell: ({ messageId }) => (
        <button type="button" class="link-cell" onClick={() => show(filters, messageId)}>
          {messageId}
        </button>
      ),
    },
    { title: 'To', cell: ({ url }) => url, isCut: true },
    { title: 'Status', cell: ({ responseStatus }) => responseStatus || '', isNumber: true },
    { title: 'What', cell: whatOf, isCut: true },
  ];
  return (
    <>
      <PageHead title="Log">
        <Button onClick={log.refresh}>Refresh</Button>
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
          options={STATES.map((state) => [state, state === '' ? 'all' : state.toLowerCase()])}
        />
        <TextField label="URL" value={draft.url ?? ''} onChange={set('url')} isMono />
        <TextField label="Message id" value={draft.messageId ?? ''} onChange={set('messageId')} isMono />
        <TextField label="Queue" value={draft.queueName ?? ''} onChange={set('queueName')} />
        <TextField label="Label" value={draft.label ?? ''} onChange={set('label')} />
        <Button type="submit" kind="primary">
          Filter
        </Button>
        <Button onClick={() => apply({})}>Clear</Button>
      </form>
      <div class={open === undefined ? 'split' : 'split two'}>
        <Panel
          isFlush
          foot={
            <More
              shown={log.items.length}
              hasMore={log.hasMore}
              isBusy={log.isBusy}
              error={log.error}
              onMore={log.more}
              what="entries"
            />
          }
        >
          <Table
            label="Log"
            columns={columns}
            rows={log.items}
            keyOf={({ messageId, time, state }) => `${messageId} ${time} ${state}`}
            empty="No entry fits."
            isBusy={log.isBusy}
          />
        </Panel>
        {open === undefined ? null : (
          <Story key={open} id={open} instance={instance} onClose={() => show(filters)} />
        )}
      </div>
    </>
  );
}

function whatOf({ error, nextDeliveryTime, state }: LogEntry) {
  if (error !== undefined) return error;
  if (nextDeliveryTime === undefined || state === 'DELIVERED') return '';
  return (
    <>
      {state === 'RETRY' ? 'again ' : 'due '}
      <Time ms={nextDeliveryTime} />
    </>
  );
}

interface StoryProps {
  readonly id: string;
  readonly instance: Instance;
  readonly onClose: () => void;
}

/** Until a message is done its story is looked at again. */
const POLL_MS = 3_000;
const LONGEST = 200;

/** All that happened to one message, in its order. */
function Story({ id, instance, onClose }: StoryProps) {
  const [outcome, run] = useAction();
  const story = useQuery(
    `story ${id}`,
    async (signal) => {
      const query = { messageId: id, order: 'earliestFirst', count: LONGEST };
      return (await instance.get<{ events: LogEntry[] }>('/v2/events', { query, signal })).events;
    },
    POLL_MS,
  );
  const entries = story.data ?? [];
  const last = entries.at(-1);
  const isOpen = last !== undefined && !['DELIVERED', 'FAILED', 'CANCELED'].includes(last.state);
  const act = (method: string, path: string, done: string) => () =>
    run(async () => {
      await instance.call(path, { method });
      story.refresh();
      return done;
    });
  const path = `/v2/messages/${encodeURIComponent(id)}`;
  return (
    <Panel
      title="Message"
      actions={
        <>
          {isOpen && instance.mayChange ? (
            <>
              <Button isSmall onClick={act('POST', `${path}/retry`, 'It is delivered now.')}>
                Deliver now
              </Button>
              <Button isSmall kind="danger" onClick={act('DELETE', path, 'It is cancelled.')}>
                Cancel message
              </Button>
            </>
          ) : null}
          <Button isSmall kind="quiet" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      <Failure error={story.error} />
      {story.data?.length === 0 ? <Empty>The log holds nothing of this message.</Empty> : null}
      <ol class="timeline" aria-label="What happened">
        {entries.map((entry) => (
          <li key={`${entry.time} ${entry.state}`} class={TONES[entry.state]}>
            <Moment entry={entry} />
          </li>
        ))}
      </ol>
      {last === undefined ? null : <MessageFacts message={last} body={last.body && textOf(last.body)} />}
    </Panel>
  );
}

function Moment({ entry }: { readonly entry: LogEntry }) {
  const { time, state, responseStatus, responseBody, error, nextDeliveryTime } = entry;
  return (
    <div class="stack">
      <div class="when">
        <StateBadge state={state} />
        <span class="mono">{clock(time)}</span>
        <span class="muted">
          <Time ms={time} />
        </span>
        {responseStatus ? <strong>{responseStatus}</strong> : null}
      </div>
      {error === undefined ? null : <span>{error}</span>}
      {nextDeliveryTime === undefined || !['RETRY', 'CREATED'].includes(state) ? null : (
        <span class="muted">
          {state === 'RETRY' ? 'next attempt ' : 'due '}
          <Time ms={nextDeliveryTime} />
        </span>
      )}
      {responseBody ? (
        <Code title="Response" label={`Response at ${clock(time)}`} text={textOf(responseBody)} isPretty />
      ) : null}
    </div>
  );
}
