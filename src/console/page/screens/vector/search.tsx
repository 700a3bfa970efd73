import { useState } from 'preact/hooks';
import { gatewayUrl } from '../../data/base.js';
import { quoted } from '../../data/format.js';
import { place } from '../../data/router.js';
import type { ScreenProps } from '../../data/screen.js';
import { Snippets } from '../../parts/code.js';
import { AreaField, Button, Check, SelectField, TextField } from '../../parts/controls.js';
import { Badge, Empty, PageHead, Panel } from '../../parts/layout.js';
import { type Column, Table } from '../../parts/table.js';
import { FilterField, FilterProblem } from './filter-field.js';
import { RecordPanel } from './record-panel.js';
import type { VectorRecord } from './types.js';
import { useInfo, useNamespace } from './use-index.js';

type Kind = 'like' | 'vector' | 'text';

interface Draft {
  readonly kind: Kind;
  readonly like: string;
  readonly vector: string;
  readonly text: string;
  readonly topK: string;
  readonly filter: string;
  readonly isExact: boolean;
}

interface Found {
  readonly entries: readonly VectorRecord[];
  readonly plan: string | null;
  readonly took: number;
}

/** @throws Error where the components are no list of numbers */
function bodyOf(draft: Draft): Record<string, unknown> {
  const common = {
    topK: Number(draft.topK),
    includeMetadata: true,
    includeData: true,
    explain: true,
    ...(draft.filter === '' ? {} : { filter: draft.filter }),
    ...(draft.isExact ? { exact: true } : {}),
  };
  if (draft.kind === 'text') return { data: draft.text, ...common };
  if (draft.kind === 'like') return { id: draft.like, ...common };
  const vector = draft.vector
    .replace(/[[\]]/g, '')
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(Number);
  if (vector.some(Number.isNaN))
    throw new Error('Vector: expected numbers with commas or blanks between them.');
  return { vector, ...common };
}

const pathOf = (kind: Kind, namespace: string) =>
  `${kind === 'text' ? '/query-data' : '/query'}${namespace === '' ? '' : `/${encodeURIComponent(namespace)}`}`;

/** By a vector, by a text where there is an embedder, or by a record that there is. */
export function SearchPage({ instance }: ScreenProps) {
  const info = useInfo(instance);
  const { namespace, field } = useNamespace(info.data);
  const [draft, setDraft] = useState<Draft>({
    kind: 'like',
    like: place.value.query.get('like') ?? '',
    vector: '',
    text: '',
    topK: '10',
    filter: '',
    isExact: false,
  });
  const [found, setFound] = useState<Found>();
  const [error, setError] = useState<Error>();
  const [open, setOpen] = useState<string>();
  const embedder = info.data?.denseIndex?.embeddingModel || info.data?.sparseIndex?.embeddingModel;
  const search = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    try {
      const path = pathOf(draft.kind, namespace);
      const answer = await instance.call<{ result: VectorRecord[] }>(path, {
        method: 'POST',
        body: bodyOf(draft),
      });
      const plan = answer.headers.get('Vector-Plan');
      setFound({ entries: answer.body.result, plan, took: answer.took });
    } catch (problem) {
      setFound(undefined);
      setError(problem as Error);
    }
  };
  const set = (name: keyof Draft) => (value: string) => setDraft({ ...draft, [name]: value });
  const columns: Column<VectorRecord>[] = [
    { title: 'Score', cell: ({ score }) => score?.toFixed(4) ?? '', isNumber: true },
    {
      title: 'Id',
      cell: ({ id }) => (
        <button type="button" class="link-cell" onClick={() => setOpen(id)}>
          {id}
        </button>
      ),
    },
    {
      title: 'Metadata',
      cell: ({ metadata }) => <code>{metadata && JSON.stringify(metadata)}</code>,
      isCut: true,
    },
    { title: 'Data', cell: ({ data }) => data?.slice(0, 200) ?? '', isCut: true },
  ];
  return (
    <>
      <PageHead title="Search" />
      <Panel>
        <form class="form" onSubmit={(event) => void search(event)}>
          <div class="form-row">
            {field}
            <SelectField
              label="By"
              value={draft.kind}
              onChange={set('kind')}
              options={[
                ['like', 'a record: more like this one'],
                ['vector', 'a vector'],
                ...(embedder ? [['text', 'a text'] as const] : []),
              ]}
            />
            <TextField label="At most" type="number" value={draft.topK} onChange={set('topK')} isRequired />
          </div>
          {draft.kind === 'like' ? (
            <TextField label="Id of the record" value={draft.like} onChange={set('like')} isMono isRequired />
          ) : draft.kind === 'text' ? (
            <AreaField label="Text" value={draft.text} onChange={set('text')} rows={3} isRequired />
          ) : (
            <AreaField
              label="Vector"
              value={draft.vector}
              onChange={set('vector')}
              rows={3}
              placeholder="0.12, -0.4, ..."
              isRequired
            />
          )}
          <FilterField value={draft.filter} onChange={set('filter')} />
          <div class="actions">
            <Button type="submit" kind="primary">
              Search
            </Button>
            <Check
              label="Compare with every vector"
              isOn={draft.isExact}
              onChange={(isExact) => setDraft({ ...draft, isExact })}
            />
          </div>
        </form>
        <FilterProblem filter={draft.filter} error={error} />
      </Panel>
      {found === undefined ? (
        <Empty>Nothing was searched for yet.</Empty>
      ) : (
        <div class={open === undefined ? 'split' : 'split two'}>
          <Panel
            title={`${found.entries.length} found`}
            isFlush
            actions={
              <>
                {found.plan === null ? null : <Badge tone="info">{found.plan}</Badge>}
                <span class="muted">{`${found.took.toFixed(1)} ms`}</span>
              </>
            }
          >
            <Table
              label="Found"
              columns={columns}
              rows={found.entries}
              keyOf={({ id }) => id}
              openKey={open}
            />
          </Panel>
          {open === undefined ? null : (
            <RecordPanel
              key={open}
              id={open}
              namespace={namespace}
              instance={instance}
              onClose={() => setOpen(undefined)}
            />
          )}
        </div>
      )}
      <Same draft={draft} namespace={namespace} path={instance.unlocked.path} />
    </>
  );
}

interface SameProps {
  readonly draft: Draft;
  readonly namespace: string;
  readonly path: string;
}

function Same({ draft, namespace, path }: SameProps) {
  let body: Record<string, unknown>;
  try {
    body = bodyOf(draft);
  } catch {
    return null;
  }
  const { explain: _, ...wanted } = body;
  const base = gatewayUrl(path).replace(/\/$/, '');
  const curl = `curl ${quoted(base + pathOf(draft.kind, namespace))} -H "Authorization: Bearer $UPSTASH_VECTOR_REST_TOKEN" \\\n  -d ${quoted(JSON.stringify(wanted))}`;
  const options = namespace === '' ? '' : `, { namespace: ${JSON.stringify(namespace)} }`;
  const sdk = `import { Index } from '@upstash/vector';\nconst index = new Index({ url: ${JSON.stringify(base)}, token: process.env.UPSTASH_VECTOR_REST_TOKEN });\nawait index.query(${JSON.stringify(wanted)}${options});`;
  return (
    <Panel title="The same from a program">
      <Snippets curl={curl} sdk={sdk} />
    </Panel>
  );
}
