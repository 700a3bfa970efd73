import { useState } from 'preact/hooks';
import type { ScreenProps } from '../../data/screen.js';
import { useQuery } from '../../data/use-query.js';
import { Button, TextField } from '../../parts/controls.js';
import { Confirm } from '../../parts/dialog.js';
import { Empty, Failure, Notice, PageHead, Panel } from '../../parts/layout.js';
import { Table } from '../../parts/table.js';
import { useAction } from '../../parts/use-action.js';
import type { UrlGroup } from './types.js';

const pathOf = (group: string) => `/v2/topics/${encodeURIComponent(group)}`;

export function UrlGroupsPage({ instance }: ScreenProps) {
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [doomed, setDoomed] = useState<string>();
  const [outcome, run] = useAction();
  const groups = useQuery('groups', (signal) => instance.get<UrlGroup[]>('/v2/topics', { signal }));
  const change = (path: string, method: string, body: unknown, done: string) =>
    run(async () => {
      await instance.call(path, { method, body });
      groups.refresh();
      return done;
    });
  const add = (event: Event) => {
    event.preventDefault();
    void change(`${pathOf(name)}/endpoints`, 'POST', { endpoints: [{ url }] }, `${url} belongs to ${name}.`);
  };
  return (
    <>
      <PageHead title="URL groups">
        <Button onClick={groups.refresh}>Refresh</Button>
      </PageHead>
      <Failure error={groups.error} />
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      {instance.mayChange ? (
        <Panel title="Add an endpoint">
          <form class="filters" onSubmit={add}>
            <TextField label="Group" value={name} onChange={setName} hint="Made if need be." isRequired />
            <TextField label="URL" value={url} onChange={setUrl} isMono isRequired />
            <Button type="submit" kind="primary">
              Add
            </Button>
          </form>
        </Panel>
      ) : null}
      {groups.data?.length === 0 ? <Empty>There is no URL group.</Empty> : null}
      {(groups.data ?? []).map((group) => (
        <Panel
          key={group.name}
          isFlush
          title={group.name}
          actions={
            instance.mayChange ? (
              <Button
                isSmall
                kind="danger"
                onClick={() => setDoomed(group.name)}
                label={`Delete ${group.name}`}
              >
                Delete
              </Button>
            ) : undefined
          }
        >
          <Table
            label={`Endpoints of ${group.name}`}
            columns={[
              { title: 'Name', cell: ({ name: endpoint }) => endpoint ?? '' },
              { title: 'URL', cell: (endpoint) => <code>{endpoint.url}</code> },
              ...(instance.mayChange
                ? [
                    {
                      title: '·Actions',
                      cell: (endpoint: UrlGroup['endpoints'][number]) => (
                        <Button
                          isSmall
                          label={`Remove ${endpoint.url}`}
                          onClick={() =>
                            change(
                              `${pathOf(group.name)}/endpoints`,
                              'DELETE',
                              { endpoints: [{ url: endpoint.url }] },
                              'It is removed.',
                            )
                          }
                        >
                          Remove
                        </Button>
                      ),
                    },
                  ]
                : []),
            ]}
            rows={group.endpoints}
            keyOf={(endpoint) => endpoint.url}
          />
        </Panel>
      ))}
      {doomed === undefined ? null : (
        <Confirm
          title="Delete the URL group"
          action="Delete"
          isDangerous
          onClose={() => setDoomed(undefined)}
          onConfirm={() => change(pathOf(doomed), 'DELETE', undefined, 'It is deleted.')}
        >
          <p>Messages that {doomed} already became are delivered.</p>
        </Confirm>
      )}
    </>
  );
}
