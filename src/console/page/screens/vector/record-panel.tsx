import { useState } from 'preact/hooks';
import { hrefOf } from '../../data/router.js';
import type { Instance } from '../../data/session.js';
import { useQuery } from '../../data/use-query.js';
import { Code } from '../../parts/code.js';
import { AreaField, Button } from '../../parts/controls.js';
import { Confirm } from '../../parts/dialog.js';
import { Empty, Facts, Failure, Notice, Panel } from '../../parts/layout.js';
import { useAction } from '../../parts/use-action.js';
import type { VectorRecord } from './types.js';
import { ask } from './use-index.js';

interface Props {
  readonly id: string;
  readonly namespace: string;
  readonly instance: Instance;
  readonly onClose: () => void;
  readonly onChanged?: () => void;
}

/** Components that are shown. */
const SHOWN = 64;

export function RecordPanel({ id, namespace, instance, onClose, onChanged }: Props) {
  const { service, name } = instance.unlocked;
  const [isDoomed, setDoomed] = useState(false);
  const [draft, setDraft] = useState<string>();
  const [outcome, act] = useAction();
  const record = useQuery(`record ${namespace} ${id}`, async (signal) => {
    const body = { ids: [id], includeVectors: true, includeMetadata: true, includeData: true };
    return (await ask<(VectorRecord | null)[]>(instance, '/fetch', namespace, body, signal))[0] ?? null;
  });
  const { data } = record;
  const change = (path: string, body: unknown, done: string) =>
    act(async () => {
      await ask(instance, path, namespace, body);
      setDraft(undefined);
      record.refresh();
      onChanged?.();
      return done;
    });
  const metadata = JSON.stringify(data?.metadata ?? {}, null, 2);
  return (
    <Panel
      title="Record"
      actions={
        <>
          <a class="button small" href={hrefOf([service, name, 'search'], { like: id, namespace })}>
            More like this
          </a>
          {instance.mayChange ? (
            <Button isSmall kind="danger" onClick={() => setDoomed(true)}>
              Delete record
            </Button>
          ) : null}
          <Button isSmall kind="quiet" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      <Failure error={record.error} />
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      {data === null ? <Empty>There is no such record any more.</Empty> : null}
      {data == null ? null : (
        <>
          <Facts
            facts={[
              ['Id', <code key="id">{data.id}</code>],
              ['Components', data.vector === undefined ? undefined : String(data.vector.length)],
            ]}
          />
          {data.data === undefined ? null : <Code title="Data" text={data.data} isPretty />}
          {instance.mayChange ? (
            <>
              <AreaField label="Metadata" rows={8} value={draft ?? metadata} onChange={setDraft} />
              <div class="actions">
                <Button
                  isSmall
                  kind="primary"
                  isDisabled={draft === undefined}
                  onClick={() =>
                    act(async () => {
                      await ask(instance, '/update', namespace, { id, metadata: JSON.parse(draft ?? '{}') });
                      setDraft(undefined);
                      record.refresh();
                      onChanged?.();
                      return 'Saved.';
                    })
                  }
                >
                  Save
                </Button>
              </div>
            </>
          ) : (
            <Code title="Metadata" text={metadata} />
          )}
          {data.vector === undefined ? null : (
            <Code
              title={`Vector${data.vector.length > SHOWN ? `, the first ${SHOWN} components` : ''}`}
              text={data.vector.slice(0, SHOWN).join(', ')}
            />
          )}
        </>
      )}
      {isDoomed ? (
        <Confirm
          title="Delete the record"
          action="Delete"
          isDangerous
          onClose={() => setDoomed(false)}
          onConfirm={() => change('/delete', { ids: [id] }, 'It is deleted.')}
        >
          <p>
            <code>{id}</code> is gone for good.
          </p>
        </Confirm>
      ) : null}
    </Panel>
  );
}
