import { useState } from 'preact/hooks';
import { bytes, duration } from '../../data/format.js';
import { hrefOf, place } from '../../data/router.js';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { usePages } from '../../data/use-pages.js';
import { Button, SelectField, TextField } from '../../parts/controls.js';
import { Badge, Notice, PageHead, Panel } from '../../parts/layout.js';
import { type Column, More, Table } from '../../parts/table.js';
import { KeyPanel } from './key-panel.js';
import { NewKey } from './new-key.js';
import { run, runAll } from './run-command.js';

interface KeyRow {
  readonly name: string;
  readonly type: string;
  /** ms; -1: it stays. */
  readonly ttl: number;
  readonly size: number | undefined;
}

const TYPES = ['', 'string', 'hash', 'list', 'set', 'zset', 'stream', 'ReJSON-RL'] as const;
/** Keys that Redis looks at in the first call, twice as many in each that follows, up to the most; and calls in one window: a rare
 * pattern is not looked for through a million keys at once. */
const FIRST_COUNT = 100;
const MOST_COUNT = 1_000;
const MOST_CALLS = 20;
const WINDOW = 50;

interface Search {
  readonly pattern: string;
  readonly type: string;
}

/** Keys by SCAN, window by window, with the details of those that are shown. */
async function scanWindow(
  instance: Instance,
  { pattern, type }: Search,
  cursor: string | undefined,
  signal: AbortSignal,
) {
  const names: string[] = [];
  let next = cursor ?? '0';
  for (let calls = 0; calls < MOST_CALLS && names.length < WINDOW; calls += 1) {
    const match = pattern === '' ? [] : ['MATCH', pattern];
    const kind = type === '' ? [] : ['TYPE', type];
    const count = Math.min(MOST_COUNT, FIRST_COUNT * 2 ** calls);
    const words = ['SCAN', next, ...match, ...kind, 'COUNT', count];
    const [after, found] = await run<[string, string[]]>(instance, words, signal);
    names.push(...found);
    next = String(after);
    if (next === '0') break;
  }
  return { items: names.sort(), cursor: next === '0' ? undefined : next };
}

async function detailsOf(
  instance: Instance,
  names: readonly string[],
  signal: AbortSignal,
): Promise<KeyRow[]> {
  const commands = names.flatMap((name) => [
    ['TYPE', name],
    ['PTTL', name],
    ['MEMORY', 'USAGE', name],
  ]);
  const parts = await runAll(instance, commands, signal);
  return names.map((name, i) => {
    const [type, ttl, size] = parts.slice(i * 3, i * 3 + 3).map(({ result }) => result);
    return {
      name,
      type: String(type ?? '?'),
      ttl: typeof ttl === 'number' ? ttl : -1,
      size: typeof size === 'number' ? size : undefined,
    };
  });
}

export function KeysPage({ instance }: ScreenProps) {
  const [search, setSearch] = useState<Search>({ pattern: '', type: '' });
  const [draft, setDraft] = useState<Search>(search);
  const [isAdding, setAdding] = useState(false);
  const { service, name } = instance.unlocked;
  const open = place.value.query.get('key') ?? undefined;
  const placeOf = (key?: string) => hrefOf([service, name, 'keys'], { key });
  const close = () => {
    location.hash = placeOf();
  };
  if (!instance.mayChange)
    return <ByName instance={instance} open={open} placeOf={placeOf} onClose={close} />;
  return (
    <>
      <PageHead title="Keys">
        <Button kind="primary" onClick={() => setAdding(true)}>
          New key
        </Button>
      </PageHead>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          setSearch(draft);
        }}
      >
        <TextField
          label="Pattern"
          value={draft.pattern}
          onChange={(pattern) => setDraft({ ...draft, pattern })}
          placeholder="user:*"
          isMono
        />
        <SelectField
          label="Type"
          value={draft.type}
          onChange={(type) => {
            setDraft({ ...draft, type });
            setSearch({ ...draft, type });
          }}
          options={TYPES.map((type) => [type, type === '' ? 'all' : type === 'ReJSON-RL' ? 'JSON' : type])}
        />
        <Button type="submit" kind="primary">
          Search
        </Button>
      </form>
      <div class={open === undefined ? 'split' : 'split two'}>
        <KeyTable instance={instance} search={search} open={open} placeOf={placeOf} />
        {open === undefined ? null : <KeyPanel key={open} name={open} instance={instance} onClose={close} />}
      </div>
      {isAdding ? (
        <NewKey
          instance={instance}
          onClose={() => setAdding(false)}
          onDone={(key) => {
            setAdding(false);
            setSearch({ ...search });
            location.hash = placeOf(key);
          }}
        />
      ) : null}
    </>
  );
}

interface TableProps {
  readonly instance: Instance;
  readonly search: Search;
  readonly open: string | undefined;
  readonly placeOf: (key: string) => string;
}

function KeyTable({ instance, search, open, placeOf }: TableProps) {
  const keys = usePages<KeyRow>(JSON.stringify(search), async (cursor, signal) => {
    const { items, cursor: next } = await scanWindow(instance, search, cursor, signal);
    return { items: await detailsOf(instance, items, signal), cursor: next };
  });
  const columns: Column<KeyRow>[] = [
    {
      title: 'Key',
      cell: (row) => (
        <a class="mono" href={placeOf(row.name)}>
          {row.name}
        </a>
      ),
      isCut: true,
    },
    { title: 'Type', cell: ({ type }) => <Badge tone="info">{type === 'ReJSON-RL' ? 'JSON' : type}</Badge> },
    { title: 'TTL', cell: ({ ttl }) => (ttl < 0 ? '' : duration(ttl / 1_000)), isNumber: true },
    { title: 'Size', cell: ({ size }) => (size === undefined ? '–' : bytes(size)), isNumber: true },
  ];
  return (
    <Panel
      isFlush
      actions={
        <Button isSmall onClick={keys.refresh}>
          Refresh
        </Button>
      }
      title="Found"
      foot={
        <More
          shown={keys.items.length}
          hasMore={keys.hasMore}
          isBusy={keys.isBusy}
          error={keys.error}
          onMore={keys.more}
          what="keys"
        />
      }
    >
      <Table
        label="Keys"
        columns={columns}
        rows={keys.items}
        keyOf={({ name }) => name}
        openKey={open}
        empty={keys.hasMore ? 'None among the keys that were looked at so far.' : 'No key fits.'}
        isBusy={keys.isBusy}
      />
    </Panel>
  );
}

interface ByNameProps {
  readonly instance: Instance;
  readonly open: string | undefined;
  readonly placeOf: (key: string) => string;
  readonly onClose: () => void;
}

/** The read-only token may look at keys that it knows, and list none. */
function ByName({ instance, open, placeOf, onClose }: ByNameProps) {
  const [key, setKey] = useState(open ?? '');
  return (
    <>
      <PageHead title="Keys" />
      <Notice tone="info">
        The read-only token opens keys by their names; only the standard one lists them.
      </Notice>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          location.hash = placeOf(key);
        }}
      >
        <TextField label="Key" value={key} onChange={setKey} isMono isRequired />
        <Button type="submit" kind="primary">
          Open
        </Button>
      </form>
      {open === undefined ? null : <KeyPanel key={open} name={open} instance={instance} onClose={onClose} />}
    </>
  );
}
