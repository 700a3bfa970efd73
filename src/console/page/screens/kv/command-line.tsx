import { useRef, useState } from 'preact/hooks';
import { gatewayUrl } from '../../data/base.js';
import { quoted } from '../../data/format.js';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { useQuery } from '../../data/use-query.js';
import { Code, Snippets } from '../../parts/code.js';
import { Button, TextField } from '../../parts/controls.js';
import { Badge, Empty, PageHead, Panel } from '../../parts/layout.js';
import { run } from './run-command.js';
import { splitLine } from './split-line.js';

interface Entry {
  readonly id: number;
  readonly line: string;
  readonly took: number;
  readonly reply?: string;
  readonly error?: string;
}

/** Replies that are kept to look at. */
const KEPT = 50;

interface Docs {
  readonly summary?: string;
  readonly arguments?: readonly { readonly name?: string; readonly token?: string }[];
}

/** Redis answers names and values in turn. */
function objectOf(flat: unknown): unknown {
  if (!Array.isArray(flat)) return flat;
  const isPairs = flat.length % 2 === 0 && flat.every((each, i) => i % 2 === 1 || typeof each === 'string');
  if (!isPairs) return flat.map(objectOf);
  return Object.fromEntries(flat.flatMap((each, i) => (i % 2 === 0 ? [[each, objectOf(flat[i + 1])]] : [])));
}

function useNames(instance: Instance): readonly string[] {
  const names = useQuery('commands', (signal) => run<string[]>(instance, ['COMMAND', 'LIST'], signal));
  return (names.data ?? []).map((name) => name.toUpperCase()).sort();
}

/** What the server says of the command that the line begins with. */
function useDocs(instance: Instance, line: string, names: readonly string[]): Docs | undefined {
  const word = splitLine(line)[0]?.toUpperCase() ?? '';
  const name = names.includes(word) ? word : '';
  const docs = useQuery(`docs ${name}`, async (signal) => {
    if (name === '') return undefined;
    const reply = objectOf(await run<unknown>(instance, ['COMMAND', 'DOCS', name], signal));
    return Object.values(reply as Record<string, Docs>)[0];
  });
  return docs.data;
}

const usageOf = ({ arguments: args }: Docs) =>
  (Array.isArray(args) ? args : [])
    .map(({ name, token }) => [token, name].filter(Boolean).join(' '))
    .join(' ');

export function CommandPage({ instance }: ScreenProps) {
  const [line, setLine] = useState('');
  const [entries, setEntries] = useState<readonly Entry[]>([]);
  /** How far back in the history one is; 0: at the line that is being written. */
  const [back, setBack] = useState(0);
  const next = useRef(1);
  const names = useNames(instance);
  const docs = useDocs(instance, line, names);
  const execute = async (event: Event) => {
    event.preventDefault();
    const words = splitLine(line);
    if (words.length === 0) return;
    const id = next.current++;
    const begun = performance.now();
    const entry = await run<unknown>(instance, words).then(
      (result) => ({ reply: typeof result === 'string' ? result : JSON.stringify(result, null, 2) }),
      (error: Error) => ({ error: error.message }),
    );
    setEntries((before) =>
      [{ id, line, took: performance.now() - begun, ...entry }, ...before].slice(0, KEPT),
    );
    setLine('');
    setBack(0);
  };
  const travel = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowUp' ? 1 : event.key === 'ArrowDown' ? -1 : 0;
    const target = back + step;
    if (step === 0 || target < 0 || target > entries.length) return;
    event.preventDefault();
    setBack(target);
    setLine(target === 0 ? '' : (entries[target - 1]?.line ?? ''));
  };
  return (
    <>
      <PageHead title="Command line" />
      <Panel>
        <form class="form" onSubmit={(event) => void execute(event)} onKeyDown={travel}>
          <TextField
            label="Command"
            value={line}
            onChange={setLine}
            placeholder="GET key"
            isMono
            options={/\s/.test(line) ? [] : names}
            hint={
              docs === undefined
                ? 'As in redis-cli; the arrow keys go through what was run.'
                : `${docs.summary ?? ''} ${usageOf(docs)}`
            }
          />
          <div class="actions">
            <Button type="submit" kind="primary">
              Run
            </Button>
          </div>
        </form>
      </Panel>
      {splitLine(line).length === 0 ? null : <Same line={line} path={instance.unlocked.path} />}
      {entries.length === 0 ? <Empty>Nothing was run yet.</Empty> : null}
      {entries.map(({ id, line: shown, took, reply, error }) => (
        <Panel
          key={id}
          title={<code>{shown}</code>}
          actions={<Badge tone={error === undefined ? 'good' : 'bad'}>{`${took.toFixed(1)} ms`}</Badge>}
        >
          <Code title={error === undefined ? 'Reply' : 'Error'} text={error ?? reply ?? ''} isPretty />
        </Panel>
      ))}
    </>
  );
}

function Same({ line, path }: { readonly line: string; readonly path: string }) {
  const words = splitLine(line);
  const base = gatewayUrl(path).replace(/\/$/, '');
  const [name = '', ...args] = words;
  const curl = `curl ${quoted(base)} -H "Authorization: Bearer $UPSTASH_REDIS_REST_TOKEN" \\\n  -d ${quoted(JSON.stringify(words))}`;
  const sdk = [
    `import { Redis } from '@upstash/redis';`,
    `const redis = new Redis({ url: ${JSON.stringify(base)}, token: process.env.UPSTASH_REDIS_REST_TOKEN });`,
    `await redis.${name.toLowerCase().replace(/\W/g, '_')}(${args.map((each) => JSON.stringify(each)).join(', ')});`,
  ].join('\n');
  return (
    <Panel title="The same from a program">
      <Snippets curl={curl} sdk={sdk} />
    </Panel>
  );
}
