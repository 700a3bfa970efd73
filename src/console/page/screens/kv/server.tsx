import { useState } from 'preact/hooks';
import { bytes, count, duration } from '../../data/format.js';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { useQuery } from '../../data/use-query.js';
import { Button } from '../../parts/controls.js';
import { Facts, Failure, PageHead, Panel } from '../../parts/layout.js';
import { Table } from '../../parts/table.js';
import { Time } from '../../parts/time.js';
import { run, runAll } from './run-command.js';

const POLL_MS = 5_000;

/** `name:value` lines. */
function infoOf(text: string): Readonly<Record<string, string>> {
  const pairs = text.split(/\r?\n/).flatMap((line) => {
    const at = line.indexOf(':');
    return at <= 0 || line.startsWith('#') ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
  });
  return Object.fromEntries(pairs);
}

type SlowEntry = readonly [
  id: number,
  at: number,
  microseconds: number,
  words: readonly string[],
  client?: string,
];

export function ServerPage({ instance }: ScreenProps) {
  const info = useQuery(
    'info',
    async (signal) => infoOf(await run<string>(instance, ['INFO'], signal)),
    POLL_MS,
  );
  const slow = useQuery('slow', (signal) => run<SlowEntry[]>(instance, ['SLOWLOG', 'GET', 25], signal));
  const at = (name: string) => info.data?.[name];
  const size = (name: string) => (at(name) === undefined ? undefined : bytes(Number(at(name))));
  return (
    <>
      <PageHead title="Server" />
      <Failure error={info.error} />
      <div class="columns">
        <Panel title="Now">
          <Facts
            facts={[
              ['Version', at('valkey_version') ?? at('redis_version')],
              ['Up for', at('uptime_in_seconds') && duration(Number(at('uptime_in_seconds')))],
              ['Role', at('role')],
              ['Clients', at('connected_clients')],
              ['Commands a second', at('instantaneous_ops_per_sec')],
              ['Memory', size('used_memory')],
              ['Most so far', size('used_memory_peak')],
              ['Limit', at('maxmemory') === '0' ? 'none' : size('maxmemory')],
              ['Eviction', at('maxmemory_policy')],
              ['Keys', at('db0')],
              [
                'Hits and misses',
                at('keyspace_hits') && `${at('keyspace_hits')} and ${at('keyspace_misses')}`,
              ],
              ['Evicted', at('evicted_keys')],
            ]}
          />
        </Panel>
        <MemoryPanel instance={instance} />
      </div>
      <Panel
        isFlush
        title="Slow log"
        actions={
          <Button isSmall onClick={slow.refresh}>
            Refresh
          </Button>
        }
      >
        <Failure error={slow.error} />
        <Table
          label="Slow log"
          columns={[
            { title: 'When', cell: ([, seconds]) => <Time ms={seconds * 1_000} /> },
            {
              title: 'Took',
              cell: ([, , microseconds]) => `${(microseconds / 1_000).toFixed(2)} ms`,
              isNumber: true,
            },
            { title: 'Command', cell: ([, , , words]) => <code>{words.join(' ')}</code>, isCut: true },
            { title: 'Client', cell: ([, , , , client]) => client ?? '' },
          ]}
          rows={slow.data ?? []}
          keyOf={([id]) => String(id)}
          empty="No command was slow."
          isBusy={slow.isFirst}
        />
      </Panel>
    </>
  );
}

interface Share {
  readonly prefix: string;
  keys: number;
  bytes: number;
}

interface Sample {
  readonly shares: readonly Share[];
  readonly looked: number;
  readonly all: number;
}

/** Keys that are looked at, and in how many requests: what is shown is an estimate. */
const SAMPLE = 2_000;
const AT_ONCE = 200;

async function sampleMemory(instance: Instance): Promise<Sample> {
  const all = await run<number>(instance, ['DBSIZE']);
  const names: string[] = [];
  let cursor = '0';
  do {
    const [next, found] = await run<[string, string[]]>(instance, ['SCAN', cursor, 'COUNT', SAMPLE / 4]);
    names.push(...found);
    cursor = String(next);
  } while (cursor !== '0' && names.length < SAMPLE);
  const shares = new Map<string, Share>();
  for (let i = 0; i < Math.min(names.length, SAMPLE); i += AT_ONCE) {
    const some = names.slice(i, Math.min(i + AT_ONCE, SAMPLE));
    const parts = await runAll(
      instance,
      some.map((name) => ['MEMORY', 'USAGE', name]),
    );
    for (const [j, name] of some.entries()) {
      const prefix = /^[^:]*:/.exec(name)?.[0] ?? '(no prefix)';
      const share = shares.get(prefix) ?? { prefix, keys: 0, bytes: 0 };
      share.keys += 1;
      share.bytes += Number(parts[j]?.result ?? 0);
      shares.set(prefix, share);
    }
  }
  const sorted = [...shares.values()].sort((a, b) => b.bytes - a.bytes);
  return { shares: sorted, looked: Math.min(names.length, SAMPLE), all };
}

function MemoryPanel({ instance }: { readonly instance: Instance }) {
  const [sample, setSample] = useState<Sample>();
  const [error, setError] = useState<Error>();
  const look = () => sampleMemory(instance).then(setSample, setError);
  const scale = sample === undefined || sample.looked === 0 ? 1 : sample.all / sample.looked;
  return (
    <Panel
      isFlush
      title="Memory by prefix"
      actions={
        <Button isSmall onClick={look} isDisabled={!instance.mayChange}>
          Sample
        </Button>
      }
      foot={
        <span class="muted">
          {sample === undefined
            ? `Looks at ${count(SAMPLE)} keys at most.`
            : `Estimated from ${count(sample.looked)} of ${count(sample.all)} keys.`}
        </span>
      }
    >
      <Failure error={error} />
      <Table
        label="Memory by prefix"
        columns={[
          { title: 'Prefix', cell: ({ prefix }) => <code>{prefix}</code>, isCut: true },
          { title: 'Keys', cell: (share) => count(Math.round(share.keys * scale)), isNumber: true },
          { title: 'Memory', cell: (share) => bytes(share.bytes * scale), isNumber: true },
        ]}
        rows={sample?.shares.slice(0, 50) ?? []}
        keyOf={({ prefix }) => prefix}
        empty={instance.mayChange ? 'Not sampled yet.' : 'The read-only token may not list keys.'}
      />
    </Panel>
  );
}
