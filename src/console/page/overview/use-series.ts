import { useRef } from 'preact/hooks';
import { ask } from '../data/api.js';
import { keys } from '../data/session.js';
import { useQuery } from '../data/use-query.js';

type Points = (number | null)[];

export interface ServiceSeries {
  readonly requests: Points;
  readonly clientErrors: Points;
  readonly failures: Points;
  readonly p50: Points;
  readonly p99: Points;
}

export interface Series {
  readonly stepMs: number;
  readonly firstStep: number;
  readonly inFlight: Points;
  readonly services: Readonly<Record<string, ServiceSeries>>;
}

export interface BackendState {
  readonly service: string;
  readonly instance: string;
  readonly backend: string;
  readonly up: boolean;
  readonly reason?: string;
}

/** As many as the gateway keeps: 15 minutes. */
const STEPS = 180;
const POLL_MS = 5_000;

/** The metrics' token shows all; otherwise each token shows its own service. */
function lookers(): string[] {
  const operator = keys.value.find(({ unlocked }) =>
    unlocked.some(({ service }) => service === 'operations'),
  );
  return operator === undefined
    ? keys.value.map(({ authorization }) => authorization)
    : [operator.authorization];
}

/** The last 15 minutes; after the first time only what is new is asked for. */
export function useSeries() {
  const known = useRef<Series | undefined>(undefined);
  return useQuery<Series>(
    `series ${lookers().join()}`,
    async (signal) => {
      const before = known.current;
      const after = before === undefined ? undefined : before.firstStep + before.inFlight.length - 1;
      const parts = await Promise.all(
        lookers().map(async (authorization) => {
          const call = { signal, query: { after } };
          return (await ask<Series>('/console/api/series', authorization, call)).body;
        }),
      );
      const fresh = together(parts);
      known.current = before === undefined ? fresh : joined(before, fresh);
      return known.current;
    },
    POLL_MS,
  );
}

export function useHealth() {
  return useQuery<BackendState[]>(
    `health ${lookers().join()}`,
    async (signal) => {
      const parts = await Promise.all(
        lookers().map((authorization) =>
          ask<{ services: BackendState[] }>('/console/api/health', authorization, { signal }),
        ),
      );
      const states = parts.flatMap(({ body }) => body.services);
      return [
        ...new Map(
          states.map((state) => [`${state.service}/${state.instance}/${state.backend}`, state]),
        ).values(),
      ];
    },
    POLL_MS,
  );
}

function together(parts: readonly Series[]): Series {
  const first = parts[0] as Series;
  return { ...first, services: Object.assign({}, ...parts.map(({ services }) => services)) };
}

/** What was known with what came since, in the steps that the gateway keeps. */
function joined(before: Series, fresh: Series): Series {
  const added = fresh.inFlight.length;
  const gap = fresh.firstStep - before.firstStep - before.inFlight.length;
  if (gap !== 0) return added === 0 ? before : fresh;
  const drop = Math.max(0, before.inFlight.length + added - STEPS);
  const join = (old: Points | undefined, more: Points | undefined, empty: number | null): Points => {
    const fill = (length: number): Points => Array.from({ length }, () => empty);
    return [...(old ?? fill(before.inFlight.length)), ...(more ?? fill(added))].slice(drop);
  };
  const names = new Set([...Object.keys(before.services), ...Object.keys(fresh.services)]);
  const services = [...names].map((name) => {
    const [old, more] = [before.services[name], fresh.services[name]];
    const part = {
      requests: join(old?.requests, more?.requests, 0),
      clientErrors: join(old?.clientErrors, more?.clientErrors, 0),
      failures: join(old?.failures, more?.failures, 0),
      p50: join(old?.p50, more?.p50, null),
      p99: join(old?.p99, more?.p99, null),
    };
    return [name, part] as const;
  });
  return {
    stepMs: fresh.stepMs,
    firstStep: before.firstStep + drop,
    inFlight: join(before.inFlight, fresh.inFlight, null),
    services: Object.fromEntries(services),
  };
}
