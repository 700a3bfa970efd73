import { useState } from 'preact/hooks';
import type { Instance } from '../../data/session.js';
import { AreaField, Button, SelectField, TextField } from '../../parts/controls.js';
import { Dialog } from '../../parts/dialog.js';
import { Failure } from '../../parts/layout.js';
import { run, type Word } from './run-command.js';
import { valueTypes } from './value-types.js';

interface Props {
  readonly instance: Instance;
  readonly onClose: () => void;
  readonly onDone: (key: string) => void;
}

const TYPES = ['string', 'JSON', 'hash', 'list', 'set', 'zset', 'stream'] as const;

function commandFor(type: string, key: string, id: string, value: string): readonly Word[] {
  // what is there is never replaced by a new key
  if (type === 'string') return ['SET', key, value, 'NX'];
  if (type === 'JSON') return ['JSON.SET', key, '$', value, 'NX'];
  return valueTypes[type]?.put(key, id, value) ?? [];
}

export function NewKey({ instance, onClose, onDone }: Props) {
  const [key, setKey] = useState('');
  const [type, setType] = useState<string>('string');
  const [id, setId] = useState('');
  const [value, setValue] = useState('');
  const [error, setError] = useState<Error>();
  const kind = valueTypes[type];
  const save = async () => {
    setError(undefined);
    try {
      const isThere = (await run<number>(instance, ['EXISTS', key])) > 0;
      if (isThere) throw new Error('There is such a key already.');
      if ((await run<unknown>(instance, commandFor(type, key, id, value))) === null)
        throw new Error('There is such a key already.');
      onDone(key);
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <Dialog
      title="New key"
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" onClick={save} isDisabled={key === ''}>
            Make
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      <TextField label="Key" value={key} onChange={setKey} isMono isRequired />
      <SelectField label="Type" value={type} onChange={setType} options={TYPES.map((each) => [each, each])} />
      {kind?.hasId ? <TextField label={kind.idTitle} value={id} onChange={setId} isMono /> : null}
      {kind?.valueTitle === '' ? null : (
        <AreaField label={kind?.valueTitle ?? 'Value'} value={value} onChange={setValue} />
      )}
      <Failure error={error} />
    </Dialog>
  );
}
