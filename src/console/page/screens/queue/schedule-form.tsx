import { useState } from 'preact/hooks';
import type { Instance } from '../../data/session.js';
import { AreaField, Button, TextField } from '../../parts/controls.js';
import { Dialog } from '../../parts/dialog.js';
import { Failure } from '../../parts/layout.js';

interface FormProps {
  readonly instance: Instance;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** A new schedule, or another one under an id that there is. */
export function ScheduleForm({ instance, onClose, onDone }: FormProps) {
  const [destination, setDestination] = useState('');
  const [cron, setCron] = useState('*/5 * * * *');
  const [id, setId] = useState('');
  const [body, setBody] = useState('');
  const [error, setError] = useState<Error>();
  const save = async () => {
    setError(undefined);
    try {
      await instance.call(`/v2/schedules/${destination}`, {
        method: 'POST',
        body,
        headers: { 'Upstash-Cron': cron, ...(id === '' ? {} : { 'Upstash-Schedule-Id': id }) },
      });
      onDone();
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <Dialog
      title="New schedule"
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" onClick={save} isDisabled={destination === '' || cron === ''}>
            Save
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      <TextField label="URL or URL group" value={destination} onChange={setDestination} isMono />
      <TextField
        label="Times"
        value={cron}
        onChange={setCron}
        isMono
        hint="Five fields, UTC; CRON_TZ=Europe/Berlin before them for another zone."
      />
      <TextField
        label="Id"
        value={id}
        onChange={setId}
        isMono
        hint="Empty: one is made. One that there is: replaced."
      />
      <AreaField label="Body" value={body} onChange={setBody} />
      <Failure error={error} />
    </Dialog>
  );
}
