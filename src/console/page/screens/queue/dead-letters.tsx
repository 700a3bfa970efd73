import { useState } from 'preact/hooks';
import { hrefOf } from '../../data/router.js';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { usePages } from '../../data/use-pages.js';
import { Code } from '../../parts/code.js';
import { Button, TextField } from '../../parts/controls.js';
import { Confirm } from '../../parts/dialog.js';
import { Badge, Notice, PageHead, Panel } from '../../parts/layout.js';
import { type Column, More, Table } from '../../parts/table.js';
import { Time } from '../../parts/time.js';
import { type Outcome, useAction } from '../../parts/use-action.js';
import { bodyText, headerText, MessageFacts } from './message-facts.js';
import type { DeadLetter } from './types.js';

const COUNT = 50;
/** A bulk call does so many at a time. */
const BULK = 100;

interface Filters {
  readonly url?: string;
  readonly queueName?: string;
  readonly label?: string;
  readonly responseStatus?: string;
}

/** What is about to be done, and to which of them: chosen ones, or all that fit. */
interface Intent {
  readonly verb: 'retry' | 'delete';
  readonly ids: readonly string[] | undefined;
}

/** Messages that could not be delivered: looked at, sent again or deleted, one, several or all that a filter finds. */
export function DeadLettersPage({ instance }: ScreenProps) {
  const [filters, setFilters] = useState<Filters>({});
  const [draft, setDraft] = useState<Filters>({});
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<DeadLetter>();
  const [intent, setIntent] = useState<Intent>();
  const [outcome, run] = useAction();
  const letters = usePages<DeadLetter>(JSON.stringify(filters), async (cursor, signal) => {
    const query = { ...filters, cursor, count: COUNT, order: 'latestFirst' };
    const page = await instance.get<{ messages: DeadLetter[]; cursor?: string }>('/v2/dlq', {
      query,
      signal,
    });
    return { items: page.messages, cursor: page.cursor };
  });
  const apply = (next: Filters) => {
    setDraft(next);
    setFilters(next);
    setChosen(new Set());
  };
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const perform = async ({ verb, ids }: Intent): Promise<string> => {
    const count = await changeAll(instance, verb, ids, filters);
    setChosen(new Set());
    setOpen(undefined);
    letters.refresh();
    return verb === 'retry' ? `${count} sent again, as new messages.` : `${count} deleted.`;
  };
  const columns: Column<DeadLetter>[] = [
    ...(instance.mayChange ? [choice(chosen, toggle)] : []),
    {
      title: 'Message',
      cell: (letter) => (
        <button type="button" class="link-cell" onClick={() => setOpen(letter)}>
          {letter.messageId}
        </button>
      ),
    },
    { title: 'Status', cell: ({ responseStatus }) => <StatusBadge status={responseStatus} /> },
    { title: 'To', cell: ({ url }) => url, isCut: true },
    { title: 'Why', cell: reasonOf, isCut: true },
    { title: 'Created', cell: ({ createdAt }) => <Time ms={createdAt} /> },
  ];
  const ids = chosen.size > 0 ? [...chosen] : undefined;
  const whom = ids === undefined ? 'all that fit' : `${ids.length} chosen`;
  return (
    <>
      <PageHead title="Dead letters">
        <Button onClick={letters.refresh}>Refresh</Button>
        {instance.mayChange ? (
          <>
            <Button
              kind="primary"
              isDisabled={letters.items.length === 0}
              onClick={() => setIntent({ verb: 'retry', ids })}
            >
              Retry {whom}
            </Button>
            <Button
              kind="danger"
              isDisabled={letters.items.length === 0}
              onClick={() => setIntent({ verb: 'delete', ids })}
            >
              Delete {whom}
            </Button>
          </>
        ) : null}
      </PageHead>
      <FilterForm draft={draft} onDraft={setDraft} onApply={apply} />
      <OutcomeNotice outcome={outcome} />
      <div class={open === undefined ? 'split' : 'split two'}>
        <Panel
          isFlush
          foot={
            <More
              shown={letters.items.length}
              hasMore={letters.hasMore}
              isBusy={letters.isBusy}
              error={letters.error}
              onMore={letters.more}
              what="dead letters"
            />
          }
        >
          <Table
            label="Dead letters"
            columns={columns}
            rows={letters.items}
            keyOf={({ dlqId }) => dlqId}
            openKey={open?.dlqId}
            empty="No message is dead."
            isBusy={letters.isBusy}
          />
        </Panel>
        {open === undefined ? null : (
          <Letter
            letter={open}
            instance={instance}
            onClose={() => setOpen(undefined)}
            onAct={(verb) => run(() => perform({ verb, ids: [open.dlqId] }))}
          />
        )}
      </div>
      {intent === undefined ? null : (
        <Confirm
          title={intent.verb === 'retry' ? `Retry ${whom}` : `Delete ${whom}`}
          action={intent.verb === 'retry' ? 'Send again' : 'Delete'}
          isDangerous={intent.verb === 'delete'}
          onClose={() => setIntent(undefined)}
          onConfirm={() => run(() => perform(intent))}
        >
          <p>{describeIntent(intent, filters)}</p>
        </Confirm>
      )}
    </>
  );
}

const choice = (chosen: ReadonlySet<string>, toggle: (id: string) => void): Column<DeadLetter> => ({
  title: '·Chosen',
  cell: ({ dlqId, messageId }) => (
    <input
      type="checkbox"
      aria-label={`Choose ${messageId}`}
      checked={chosen.has(dlqId)}
      onChange={() => toggle(dlqId)}
    />
  ),
});

function describeIntent({ verb, ids }: Intent, filters: Filters): string {
  const what = ids === undefined ? 'Every dead letter that the filter finds' : `${ids.length} dead letters`;
  const filter = Object.entries(filters).filter(([, value]) => value);
  const which = ids === undefined && filter.length === 0 ? ' (there is no filter: all of them)' : '';
  return verb === 'retry'
    ? `${what}${which} will be sent again, each as a new message.`
    : `${what}${which} will be deleted. This cannot be undone.`;
}

/** Goes on until the service says that there are no more. @returns how many there were */
async function changeAll(
  instance: Instance,
  verb: Intent['verb'],
  ids: readonly string[] | undefined,
  filters: Filters,
): Promise<number> {
  const [method, path] = verb === 'retry' ? ['POST', '/v2/dlq/retry'] : ['DELETE', '/v2/dlq'];
  if (ids !== undefined) {
    const { body } = await instance.call<Done>(path, { method, body: { dlqIds: ids } });
    return doneOf(body, ids.length);
  }
  let [count, cursor]: [number, string | undefined] = [0, undefined];
  do {
    const query: Record<string, string | number | undefined> = { ...filters, count: BULK, cursor };
    const { body } = await instance.call<Done>(path, { method, query });
    count += doneOf(body, 0);
    cursor = body.cursor === '' ? undefined : body.cursor;
  } while (cursor !== undefined);
  return count;
}

interface Done {
  readonly deleted?: number;
  readonly messageId?: string;
  readonly responses?: readonly object[];
  readonly cursor?: string;
}

const doneOf = ({ deleted, responses, messageId }: Done, otherwise: number) =>
  deleted ?? responses?.length ?? (messageId === undefined ? otherwise : 1);

function StatusBadge({ status }: { readonly status: number }) {
  return <Badge tone="bad">{status === 0 ? 'no answer' : status}</Badge>;
}

const reasonOf = ({ error, responseBody, responseBodyBase64 }: DeadLetter) =>
  error ?? bodyText(responseBody, responseBodyBase64)?.slice(0, 200) ?? '';

interface FormProps {
  readonly draft: Filters;
  readonly onDraft: (filters: Filters) => void;
  readonly onApply: (filters: Filters) => void;
}

function FilterForm({ draft, onDraft, onApply }: FormProps) {
  const set = (name: keyof Filters) => (value: string) => onDraft({ ...draft, [name]: value });
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        onApply(draft);
      }}
    >
      <TextField label="URL" value={draft.url ?? ''} onChange={set('url')} isMono />
      <TextField label="Queue" value={draft.queueName ?? ''} onChange={set('queueName')} />
      <TextField label="Label" value={draft.label ?? ''} onChange={set('label')} />
      <TextField label="Status" value={draft.responseStatus ?? ''} onChange={set('responseStatus')} />
      <Button type="submit" kind="primary">
        Filter
      </Button>
      <Button onClick={() => onApply({})}>Clear</Button>
    </form>
  );
}

function OutcomeNotice({ outcome }: { readonly outcome: Outcome | undefined }) {
  return outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>;
}

interface LetterProps {
  readonly letter: DeadLetter;
  readonly instance: Instance;
  readonly onClose: () => void;
  readonly onAct: (verb: Intent['verb']) => Promise<void>;
}

function Letter({ letter, instance, onClose, onAct }: LetterProps) {
  const { service, name } = instance.unlocked;
  const response = bodyText(letter.responseBody, letter.responseBodyBase64);
  const headers = headerText(letter.responseHeader ?? {});
  return (
    <Panel
      title="Dead letter"
      actions={
        <>
          {instance.mayChange ? (
            <>
              <Button isSmall kind="primary" onClick={() => onAct('retry')}>
                Retry
              </Button>
              <Button isSmall kind="danger" onClick={() => onAct('delete')}>
                Delete
              </Button>
            </>
          ) : null}
          <a class="button small" href={hrefOf([service, name, 'log'], { open: letter.messageId })}>
            Its story
          </a>
          <Button isSmall kind="quiet" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      <div class="actions">
        <StatusBadge status={letter.responseStatus} />
        {letter.error === undefined ? null : <span>{letter.error}</span>}
      </div>
      {response === undefined ? null : <Code title="Last response" text={response} isPretty />}
      {headers === '' ? null : <Code title="Headers of the response" text={headers} />}
      <MessageFacts message={letter} body={bodyText(letter.body, letter.bodyBase64)} />
    </Panel>
  );
}
