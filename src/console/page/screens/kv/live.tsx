import { useEffect, useState } from 'preact/hooks';
import { gatewayUrl } from '../../data/base.js';
import { clock } from '../../data/format.js';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { Button, SelectField, TextField } from '../../parts/controls.js';
import { Failure, Notice, PageHead, Panel } from '../../parts/layout.js';
import { Table } from '../../parts/table.js';

interface Line {
  readonly id: number;
  readonly at: number;
  readonly text: string;
}

/** The newest ones are kept. */
const KEPT = 200;

/** The lines of an event stream as they come, until the signal says that it is enough. */
async function* eventsOf(instance: Instance, path: string, signal: AbortSignal): AsyncGenerator<string> {
  const below = instance.unlocked.path === '/' ? '' : instance.unlocked.path;
  const response = await fetch(gatewayUrl(below + path), {
    headers: { Authorization: instance.authorization, Accept: 'text/event-stream' },
    signal,
  });
  if (!response.ok || response.body === null) throw new Error(`${response.status}: ${await response.text()}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data:')) yield line.slice(5).trim();
  }
}

interface Watched {
  readonly path: string;
}

/** Messages of channels, or every command that Redis runs, as they happen. */
export function LivePage({ instance }: ScreenProps) {
  const [kind, setKind] = useState('psubscribe');
  const [pattern, setPattern] = useState('*');
  const [watched, setWatched] = useState<Watched>();
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [error, setError] = useState<Error>();
  useEffect(() => {
    if (watched === undefined) return;
    const controller = new AbortController();
    let next = 1;
    const watch = async () => {
      for await (const text of eventsOf(instance, watched.path, controller.signal))
        setLines((before) => [{ id: next++, at: Date.now(), text }, ...before].slice(0, KEPT));
    };
    watch().catch((problem: Error) => {
      if (!controller.signal.aborted) setError(problem);
    });
    return () => controller.abort();
  }, [watched, instance]);
  const begin = (event: Event) => {
    event.preventDefault();
    setError(undefined);
    setLines([]);
    setWatched({ path: kind === 'monitor' ? '/monitor' : `/${kind}/${encodeURIComponent(pattern)}` });
  };
  return (
    <>
      <PageHead title="Live" />
      <Panel>
        <form class="filters" onSubmit={begin}>
          <SelectField
            label="What"
            value={kind}
            onChange={setKind}
            options={[
              ['psubscribe', 'Channels by pattern'],
              ['subscribe', 'One channel'],
              ['monitor', 'Every command (MONITOR)'],
            ]}
          />
          {kind === 'monitor' ? null : (
            <TextField label="Channel" value={pattern} onChange={setPattern} isMono isRequired />
          )}
          <Button type="submit" kind="primary">
            Watch
          </Button>
          <Button onClick={() => setWatched(undefined)} isDisabled={watched === undefined}>
            Stop
          </Button>
        </form>
        {kind === 'monitor' ? (
          <Notice tone="warn">MONITOR makes a busy Redis slower for as long as it is watched.</Notice>
        ) : null}
        <Failure error={error} />
      </Panel>
      <Panel isFlush title={watched === undefined ? 'Not watching' : 'Watching'}>
        <Table
          label="Live"
          columns={[
            { title: 'When', cell: ({ at }) => <span class="mono once">{clock(at)}</span> },
            { title: 'What', cell: ({ text }) => <code>{text}</code> },
          ]}
          rows={lines}
          keyOf={({ id }) => String(id)}
          empty={watched === undefined ? 'Choose what to watch.' : 'Nothing came yet.'}
        />
      </Panel>
    </>
  );
}
