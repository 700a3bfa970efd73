import { useState } from 'preact/hooks';
import { bytes, count, duration } from '../../data/format.js';
import type { Instance } from '../../data/session.js';
import { useQuery } from '../../data/use-query.js';
import { Button, TextField } from '../../parts/controls.js';
import { Confirm } from '../../parts/dialog.js';
import { Badge, Empty, Facts, Failure, Notice, Panel } from '../../parts/layout.js';
import { useAction } from '../../parts/use-action.js';
import { type Part, run, runAll } from './run-command.js';
import { ValueView } from './value-view.js';

interface KeyFacts {
  readonly type: string;
  readonly ttl: number;
  readonly size: number | undefined;
  readonly idle: number | undefined;
  readonly encoding: string | undefined;
  readonly length: number | undefined;
}

/** How many elements a value of each type has. */
const LENGTHS: Readonly<Record<string, string>> = {
  string: 'STRLEN',
  hash: 'HLEN',
  list: 'LLEN',
  set: 'SCARD',
  zset: 'ZCARD',
  stream: 'XLEN',
};

async function factsOf(instance: Instance, name: string, signal: AbortSignal): Promise<KeyFacts | undefined> {
  // idle first: looking at a key is a touch of it
  const parts = await runAll(
    instance,
    [
      ['OBJECT', 'IDLETIME', name],
      ['TYPE', name],
      ['PTTL', name],
      ['MEMORY', 'USAGE', name],
      ['OBJECT', 'ENCODING', name],
    ],
    signal,
  );
  const [idle, type, ttl, size, encoding] = parts as [Part, Part, Part, Part, Part];
  if (type.error !== undefined) throw new Error(type.error);
  if (type.result === 'none') return undefined;
  const numberOf = ({ result }: Part) => (typeof result === 'number' ? result : undefined);
  const lengthOf = LENGTHS[String(type.result)];
  const length = lengthOf === undefined ? undefined : await run<number>(instance, [lengthOf, name], signal);
  return {
    type: String(type.result),
    ttl: numberOf(ttl) ?? -1,
    size: numberOf(size),
    idle: numberOf(idle),
    encoding: typeof encoding.result === 'string' ? encoding.result : undefined,
    length,
  };
}

interface PanelProps {
  readonly name: string;
  readonly instance: Instance;
  readonly onClose: () => void;
}

/** What is in a key, how large it is and when it was last touched. */
export function KeyPanel({ name, instance, onClose }: PanelProps) {
  const facts = useQuery(`key ${name}`, (signal) => factsOf(instance, name, signal));
  const [isDoomed, setDoomed] = useState(false);
  const [outcome, act] = useAction();
  const change = (words: readonly (string | number)[], done: string) =>
    act(async () => {
      await run(instance, words);
      facts.refresh();
      return done;
    });
  const { data } = facts;
  return (
    <Panel
      title="Key"
      actions={
        <>
          <Button isSmall onClick={facts.refresh}>
            Refresh
          </Button>
          {instance.mayChange ? (
            <Button isSmall kind="danger" onClick={() => setDoomed(true)}>
              Delete key
            </Button>
          ) : null}
          <Button isSmall kind="quiet" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      <Failure error={facts.error} />
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      {facts.isFirst ? <Empty>Loading…</Empty> : null}
      {!facts.isFirst && data === undefined && facts.error === undefined ? (
        <Empty>There is no such key any more.</Empty>
      ) : null}
      {data === undefined ? null : (
        <>
          <Facts
            facts={[
              ['Name', <code key="name">{name}</code>],
              [
                'Type',
                <Badge key="type" tone="info">
                  {data.type === 'ReJSON-RL' ? 'JSON' : data.type}
                </Badge>,
              ],
              [
                'Elements',
                data.length === undefined || data.type === 'string' ? undefined : count(data.length),
              ],
              [
                'Length',
                data.type === 'string' && data.length !== undefined ? bytes(data.length) : undefined,
              ],
              ['In memory', data.size === undefined ? undefined : bytes(data.size)],
              ['Encoding', data.encoding],
              ['Last touched', data.idle === undefined ? undefined : `${duration(data.idle)} ago`],
              ['Expires', data.ttl < 0 ? 'never' : `in ${duration(data.ttl / 1_000)}`],
            ]}
          />
          {instance.mayChange ? <Expiry ttl={data.ttl} name={name} onChange={change} /> : null}
          <ValueView name={name} type={data.type} instance={instance} onChanged={facts.refresh} />
        </>
      )}
      {isDoomed ? (
        <Confirm
          title="Delete the key"
          action="Delete"
          isDangerous
          onClose={() => setDoomed(false)}
          onConfirm={() => change(['UNLINK', name], 'It is deleted.')}
        >
          <p>
            <code>{name}</code> is gone for good.
          </p>
        </Confirm>
      ) : null}
    </Panel>
  );
}

interface ExpiryProps {
  readonly name: string;
  readonly ttl: number;
  readonly onChange: (words: readonly (string | number)[], done: string) => Promise<void>;
}

function Expiry({ name, ttl, onChange }: ExpiryProps) {
  const [seconds, setSeconds] = useState('3600');
  const submit = (event: Event) => {
    event.preventDefault();
    void onChange(['EXPIRE', name, Number(seconds)], `It expires in ${duration(Number(seconds))}.`);
  };
  return (
    <form class="filters" onSubmit={submit}>
      <TextField label="Seconds to live" type="number" value={seconds} onChange={setSeconds} isRequired />
      <Button type="submit" isSmall>
        Expire
      </Button>
      {ttl < 0 ? null : (
        <Button isSmall onClick={() => onChange(['PERSIST', name], 'It stays.')}>
          Keep for good
        </Button>
      )}
    </form>
  );
}
