import { useState } from 'preact/hooks';
import { gatewayUrl } from '../../data/base.js';
import { quoted } from '../../data/format.js';
import type { Instance } from '../../data/session.js';
import { Snippets } from '../../parts/code.js';
import { AreaField, Button, SelectField, TextField } from '../../parts/controls.js';
import { Dialog } from '../../parts/dialog.js';
import { Notice } from '../../parts/layout.js';
import { useAction } from '../../parts/use-action.js';

interface Props {
  readonly instance: Instance;
  readonly topic: string;
  readonly partitions: number;
  readonly onClose: () => void;
}

interface Written {
  readonly partition: number;
  readonly offset: number;
}

export function Produce({ instance, topic, partitions, onClose }: Props) {
  const [key, setKey] = useState('');
  const [value, setValue] = useState('{"hello": "world"}');
  const [partition, setPartition] = useState('');
  const [outcome, act] = useAction();
  const record = {
    value,
    ...(key === '' ? {} : { key }),
    ...(partition === '' ? {} : { partition: Number(partition) }),
  };
  const base = gatewayUrl(instance.unlocked.path).replace(/\/$/, '');
  const produce = () =>
    act(async () => {
      const call = { method: 'POST', body: record };
      const [written] = await instance.get<Written[]>(`/produce/${encodeURIComponent(topic)}`, call);
      return `Written to partition ${written?.partition} at offset ${written?.offset}.`;
    });
  const curl = `curl -u "$PORTICO_BROKER_USERNAME:$PORTICO_BROKER_PASSWORD" ${quoted(`${base}/produce/${topic}`)} \\\n  -d ${quoted(JSON.stringify(record))}`;
  const sdk = `import { Kafka } from '@upstash/kafka';\nconst kafka = new Kafka({ url: ${JSON.stringify(base)}, username, password });\nawait kafka.producer().produce(${JSON.stringify(topic)}, ${JSON.stringify(value)}, ${JSON.stringify({ ...record, value: undefined })});`;
  return (
    <Dialog
      title={`Produce to ${topic}`}
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" onClick={produce}>
            Produce
          </Button>
          <Button onClick={onClose}>Close</Button>
        </>
      }
    >
      <div class="form-row">
        <TextField label="Key" value={key} onChange={setKey} isMono />
        <SelectField
          label="Partition"
          value={partition}
          onChange={setPartition}
          options={[
            ['', 'by the key, or in turns'],
            ...Array.from({ length: partitions }, (_, i) => [String(i), String(i)] as const),
          ]}
        />
      </div>
      <AreaField label="Value" value={value} onChange={setValue} />
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      <Snippets curl={curl} sdk={sdk} />
    </Dialog>
  );
}
