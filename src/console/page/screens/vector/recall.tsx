import { useState } from 'preact/hooks';
import type { ScreenProps } from '../../data/screen.js';
import type { Instance } from '../../data/session.js';
import { Button, TextField } from '../../parts/controls.js';
import { Empty, Failure, PageHead, Panel } from '../../parts/layout.js';
import { Table } from '../../parts/table.js';
import type { VectorRecord } from './types.js';
import { ask, useInfo, useNamespace } from './use-index.js';

/** Records that are asked about, one after the other: so that the times are those of one query. */
const SAMPLE = 20;

interface Probe {
  readonly id: string;
  readonly recall: number;
  readonly exactMs: number;
  readonly usualMs: number;
  readonly plan: string;
}

interface Answer {
  readonly ids: readonly string[];
  readonly took: number;
  readonly plan: string;
}

async function query(instance: Instance, namespace: string, body: object): Promise<Answer> {
  const path = namespace === '' ? '/query' : `/query/${encodeURIComponent(namespace)}`;
  const answer = await instance.call<{ result: VectorRecord[] }>(path, {
    method: 'POST',
    body: { ...body, explain: true },
  });
  const plan = answer.headers.get('Vector-Plan') ?? '';
  return { ids: answer.body.result.map(({ id }) => id), took: answer.took, plan };
}

async function probe(instance: Instance, namespace: string, topK: number): Promise<Probe[]> {
  const ids = new Set<string>();
  for (let i = 0; i < SAMPLE; i += 1) {
    const record = await ask<VectorRecord | null>(instance, '/random', namespace, undefined);
    if (record !== null) ids.add(record.id);
  }
  const probes: Probe[] = [];
  for (const id of ids) {
    const exact = await query(instance, namespace, { id, topK, exact: true });
    const usual = await query(instance, namespace, { id, topK });
    const hits = usual.ids.filter((each) => exact.ids.includes(each)).length;
    const recall = exact.ids.length === 0 ? 1 : hits / exact.ids.length;
    probes.push({ id, recall, exactMs: exact.took, usualMs: usual.took, plan: usual.plan });
  }
  return probes;
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** How many of the truly nearest a usual query finds, on a sample of the records. */
export function RecallPage({ instance }: ScreenProps) {
  const info = useInfo(instance);
  const { namespace, field } = useNamespace(info.data);
  const [topK, setTopK] = useState('10');
  const [probes, setProbes] = useState<readonly Probe[]>();
  const [error, setError] = useState<Error>();
  const run = () => probe(instance, namespace, Number(topK)).then(setProbes, setError);
  return (
    <>
      <PageHead title="Recall" />
      <Panel>
        <div class="filters">
          {field}
          <TextField label="Nearest" type="number" value={topK} onChange={setTopK} />
          <Button kind="primary" onClick={run}>
            Probe
          </Button>
        </div>
        <p class="muted">
          Asks for what is near to {SAMPLE} records at random, once comparing every vector and once as usual.
        </p>
        <Failure error={error} />
      </Panel>
      {probes === undefined ? (
        <Empty>Not probed yet.</Empty>
      ) : probes.length === 0 ? (
        <Empty>There is no record.</Empty>
      ) : (
        <>
          <div class="tiles">
            {[
              ['recall', `${(mean(probes.map(({ recall }) => recall)) * 100).toFixed(1)} %`],
              ['exact', `${mean(probes.map(({ exactMs }) => exactMs)).toFixed(1)} ms`],
              ['as usual', `${mean(probes.map(({ usualMs }) => usualMs)).toFixed(1)} ms`],
            ].map(([name, value]) => (
              <div class="tile" key={name}>
                <span class="value">{value}</span>
                <span class="name">{name}</span>
              </div>
            ))}
          </div>
          <Panel isFlush>
            <Table
              label="Probes"
              columns={[
                { title: 'Record', cell: ({ id }) => <code>{id}</code>, isCut: true },
                { title: 'Recall', cell: ({ recall }) => `${(recall * 100).toFixed(0)} %`, isNumber: true },
                { title: 'Exact', cell: ({ exactMs }) => `${exactMs.toFixed(1)} ms`, isNumber: true },
                { title: 'As usual', cell: ({ usualMs }) => `${usualMs.toFixed(1)} ms`, isNumber: true },
                { title: 'By', cell: ({ plan }) => plan },
              ]}
              rows={probes}
              keyOf={({ id }) => id}
            />
          </Panel>
        </>
      )}
    </>
  );
}
