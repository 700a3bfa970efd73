import { useState } from 'preact/hooks';
import { count } from '../../data/format.js';
import type { Instance } from '../../data/session.js';
import { type Query, useQuery } from '../../data/use-query.js';
import { SelectField } from '../../parts/controls.js';
import type { IndexInfo } from './types.js';

/** What the service answers, out of its envelope. @throws ApiError */
export async function ask<Result>(
  instance: Instance,
  path: string,
  namespace: string,
  body: unknown,
  signal?: AbortSignal,
): Promise<Result> {
  const below = namespace === '' ? path : `${path}/${encodeURIComponent(namespace)}`;
  const call = { method: 'POST', body, ...(signal === undefined ? {} : { signal }) };
  return (await instance.get<{ result: Result }>(below, call)).result;
}

const POLL_MS = 10_000;

export function useInfo(instance: Instance): Query<IndexInfo> {
  return useQuery(
    'info',
    async (signal) => {
      const call = { query: { explain: 'true' }, signal };
      return (await instance.get<{ result: IndexInfo }>('/info', call)).result;
    },
    POLL_MS,
  );
}

interface Chosen {
  readonly namespace: string;
  readonly field: preact.JSX.Element;
}

/** A choice among the namespaces that there are; the empty name is the default one. */
export function useNamespace(info: IndexInfo | undefined): Chosen {
  const [namespace, setNamespace] = useState('');
  const names = Object.entries(info?.namespaces ?? { '': { vectorCount: 0 } });
  const field = (
    <SelectField
      label="Namespace"
      value={namespace}
      onChange={setNamespace}
      options={names.map(([name, { vectorCount }]) => [
        name,
        `${name === '' ? '(default)' : name} · ${count(vectorCount)}`,
      ])}
    />
  );
  return { namespace, field };
}
