import { useState } from 'preact/hooks';
import { bytes, count } from '../../data/format.js';
import type { ScreenProps } from '../../data/screen.js';
import { usePages } from '../../data/use-pages.js';
import { Button, TextField } from '../../parts/controls.js';
import { Badge, Facts, Failure, PageHead, Panel } from '../../parts/layout.js';
import { type Column, More, Table } from '../../parts/table.js';
import { FilterField, FilterProblem } from './filter-field.js';
import { RecordPanel } from './record-panel.js';
import type { IndexInfo, VectorRecord } from './types.js';
import { ask, useInfo, useNamespace } from './use-index.js';

const WINDOW = 50;

interface Wanted {
  readonly prefix: string;
  readonly filter: string;
}

/** The index, and its records in windows. */
export function RecordsPage({ instance }: ScreenProps) {
  const info = useInfo(instance);
  const { namespace, field } = useNamespace(info.data);
  const [draft, setDraft] = useState<Wanted>({ prefix: '', filter: '' });
  const [wanted, setWanted] = useState(draft);
  const [open, setOpen] = useState<string>();
  const pages = usePages<VectorRecord>(`${namespace} ${JSON.stringify(wanted)}`, async (cursor, signal) => {
    const { prefix, filter } = wanted;
    const page = await ask<{ nextCursor: string; vectors: VectorRecord[] }>(
      instance,
      '/range',
      namespace,
      {
        cursor: cursor ?? '0',
        limit: WINDOW,
        includeMetadata: true,
        includeData: true,
        ...(prefix === '' ? {} : { prefix }),
        ...(filter === '' ? {} : { filter }),
      },
      signal,
    );
    return { items: page.vectors, cursor: page.nextCursor };
  });
  const columns: Column<VectorRecord>[] = [
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
      <PageHead title="Records">
        <Button onClick={pages.refresh}>Refresh</Button>
      </PageHead>
      <Failure error={info.error} />
      {info.data === undefined ? null : <IndexPanel info={info.data} />}
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          setWanted(draft);
        }}
      >
        {field}
        <TextField
          label="Id begins with"
          value={draft.prefix}
          onChange={(prefix) => setDraft({ ...draft, prefix })}
          isMono
        />
        <FilterField value={draft.filter} onChange={(filter) => setDraft({ ...draft, filter })} />
        <Button type="submit" kind="primary">
          Find
        </Button>
      </form>
      <FilterProblem filter={wanted.filter} error={pages.error} />
      <div class={open === undefined ? 'split' : 'split two'}>
        <Panel
          isFlush
          foot={
            <More
              shown={pages.items.length}
              hasMore={pages.hasMore}
              isBusy={pages.isBusy}
              error={undefined}
              onMore={pages.more}
              what="records"
            />
          }
        >
          <Table
            label="Records"
            columns={columns}
            rows={pages.items}
            keyOf={({ id }) => id}
            openKey={open}
            empty="No record fits."
            isBusy={pages.isBusy}
          />
        </Panel>
        {open === undefined ? null : (
          <RecordPanel
            key={open}
            id={open}
            namespace={namespace}
            instance={instance}
            onClose={() => setOpen(undefined)}
            onChanged={pages.refresh}
          />
        )}
      </div>
    </>
  );
}

const GRAPHS = { ready: 'good', building: 'warn', none: 'plain' } as const;

function IndexPanel({ info }: { readonly info: IndexInfo }) {
  const graphs = Object.entries(info.namespaces).filter(([, { graph }]) => graph !== undefined);
  return (
    <Panel title="Index">
      <Facts
        facts={[
          [
            'Records',
            `${count(info.vectorCount)} in ${count(Object.keys(info.namespaces).length)} namespaces`,
          ],
          ['Size', bytes(info.indexSize)],
          [
            'Kind',
            [info.indexType, info.dimension || '', info.similarityFunction].filter(Boolean).join(', '),
          ],
          ['Embedder', info.denseIndex?.embeddingModel || info.sparseIndex?.embeddingModel || undefined],
          [
            'Graph (HNSW)',
            <span class="actions" key="graph">
              {graphs.slice(0, 12).map(([name, { graph }]) => (
                <Badge key={name} tone={GRAPHS[graph ?? 'none']}>
                  {`${name === '' ? '(default)' : name}: ${graph === 'none' ? 'compared exactly' : graph}`}
                </Badge>
              ))}
              {graphs.length > 12 ? <span class="muted">{`and ${graphs.length - 12} more`}</span> : null}
            </span>,
          ],
        ]}
      />
    </Panel>
  );
}
