import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

export interface Query<Data> {
  readonly data: Data | undefined;
  readonly error: Error | undefined;
  /** Nothing was there yet, and it is asked for. */
  readonly isFirst: boolean;
  readonly isBusy: boolean;
  refresh(): void;
}

interface State<Data> {
  readonly data?: Data;
  readonly error?: Error;
  readonly isBusy: boolean;
}

/**
 * Asks once for each `key`, and again every `everyMs` as long as the tab is shown: a hidden one costs the gateway nothing.
 * What was there stays while something newer of the same key is asked for, also when that fails.
 */
export function useQuery<Data>(
  key: string,
  load: (signal: AbortSignal) => Promise<Data>,
  everyMs?: number,
): Query<Data> {
  const [state, setState] = useState<State<Data> & { key: string }>({ key, isBusy: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const work = async () => {
      if (document.hidden) return;
      setState((before) => (before.key === key ? { ...before, isBusy: true } : { key, isBusy: true }));
      const outcome = await latest.current(controller.signal).then(
        (data) => ({ data }),
        (error: Error) => ({ error }),
      );
      if (controller.signal.aborted) return;
      setState((before) => {
        const kept = before.key === key && before.data !== undefined ? { data: before.data } : {};
        return { key, ...('error' in outcome ? kept : {}), ...outcome, isBusy: false };
      });
      if (everyMs !== undefined) timer = setTimeout(work, everyMs);
    };
    const shown = () => {
      clearTimeout(timer);
      if (!document.hidden) void work();
    };
    if (everyMs !== undefined || document.hidden) document.addEventListener('visibilitychange', shown);
    void work();
    return () => {
      controller.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', shown);
    };
  }, [key, everyMs, turn]);
  const refresh = useCallback(() => setTurn((before) => before + 1), []);
  const isOwn = state.key === key;
  const data = isOwn ? state.data : undefined;
  const error = isOwn ? state.error : undefined;
  return { data, error, isFirst: data === undefined && error === undefined, isBusy: state.isBusy, refresh };
}
