import { count } from '../../data/format.js';
import { hrefOf } from '../../data/router.js';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { usePages } from '../../data/use-pages.js';
import { Button } from '../../parts/controls.js';
import { Badge, PageHead, Panel, type Tone } from '../../parts/layout.js';
import { type Column, More, Table } from '../../parts/table.js';
import { GroupPage } from './group.js';

export interface Group {
  readonly name: string;
  readonly state: string;
  readonly members: readonly { readonly client: string; readonly host: string }[];
  /** Records behind the ends of its logs; undefined: it could not be told. */
  readonly lag?: number | undefined;
}

const WINDOW = 50;

export const groupTone = (state: string): Tone =>
  state === 'Stable' ? 'good' : state === 'Empty' || state === 'Dead' ? 'plain' : 'warn';

interface PartitionLag {
  readonly lag: number;
}

/** Groups with how far each is behind, window by window. */
async function groupsFrom(instance: Instance, cursor: string | undefined, signal: AbortSignal) {
  const query = { after: cursor, limit: WINDOW };
  const page = await instance.get<{ groups: Group[]; cursor?: string }>('/groups', { query, signal });
  const items = await Promise.all(
    page.groups.map(async (group): Promise<Group> => {
      const path = `/lag/${encodeURIComponent(group.name)}`;
      const lags = await instance.get<PartitionLag[]>(path, { signal }).catch(() => undefined);
      return { ...group, lag: lags?.reduce((sum, { lag }) => sum + lag, 0) };
    }),
  );
  return { items, cursor: page.cursor };
}

export function GroupsPage({ instance, rest: [group] }: ScreenProps) {
  return group === undefined ? (
    <GroupList instance={instance} />
  ) : (
    <GroupPage key={group} instance={instance} group={group} />
  );
}

function GroupList({ instance }: { readonly instance: Instance }) {
  const { service, name } = instance.unlocked;
  const pages = usePages<Group>('groups', (cursor, signal) => groupsFrom(instance, cursor, signal));
  const rows = [...pages.items].sort((a, b) => (b.lag ?? -1) - (a.lag ?? -1));
  const columns: Column<Group>[] = [
    {
      title: 'Group',
      cell: (group) => (
        <a class="mono" href={hrefOf([service, name, 'groups', group.name])}>
          {group.name}
        </a>
      ),
    },
    { title: 'State', cell: ({ state }) => <Badge tone={groupTone(state)}>{state}</Badge> },
    { title: 'Members', cell: ({ members }) => count(members.length), isNumber: true },
    { title: 'Lag', cell: ({ lag }) => (lag === undefined ? '–' : count(lag)), isNumber: true },
  ];
  return (
    <>
      <PageHead title="Consumer groups">
        <Button onClick={pages.refresh}>Refresh</Button>
      </PageHead>
      <Panel
        isFlush
        foot={
          <More
            shown={rows.length}
            hasMore={pages.hasMore}
            isBusy={pages.isBusy}
            error={pages.error}
            onMore={pages.more}
            what="groups"
          />
        }
      >
        <Table
          label="Consumer groups"
          columns={columns}
          rows={rows}
          keyOf={({ name: group }) => group}
          empty="There is no consumer group."
          isBusy={pages.isBusy}
        />
      </Panel>
    </>
  );
}
