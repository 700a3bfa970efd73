import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

/** A window of a list and where the next one begins. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly cursor?: string | undefined;
}

export interface Pages<Item> {
  readonly items: readonly Item[];
  readonly error: Error | undefined;
  readonly isBusy: boolean;
  readonly hasMore: boolean;
  more(): void;
  refresh(): void;
}

interface State<Item> extends Page<Item> {
  readonly error?: Error | undefined;
  readonly isBusy: boolean;
}

const NONE = { items: [], isBusy: true };

/** A list that is asked for window by window, from the beginning again whenever `key` changes. */
export function usePages<Item>(
  key: string,
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<Item>>,
): Pages<Item> {
  const [state, setState] = useState<State<Item>>(NONE);
  const latest = useRef(load);
  latest.current = load;
  const controller = useRef(new AbortController());
  const work = useCallback(async (before: readonly Item[], cursor: string | undefined) => {
    controller.current.abort();
    const own = new AbortController();
    controller.current = own;
    setState((known) => ({ ...known, isBusy: true, error: undefined }));
    try {
      const page = await latest.current(cursor, own.signal);
      if (!own.signal.aborted)
        setState({ items: [...before, ...page.items], cursor: page.cursor, isBusy: false });
    } catch (error) {
      if (!own.signal.aborted) setState((known) => ({ ...known, isBusy: false, error: error as Error }));
    }
  }, []);
  useEffect(() => {
    setState(NONE);
    void work([], undefined);
    return () => controller.current.abort();
  }, [key, work]);
  return {
    items: state.items,
    error: state.error,
    isBusy: state.isBusy,
    hasMore: state.cursor !== undefined && state.cursor !== '',
    more: () => void work(state.items, state.cursor),
    refresh: () => void work([], undefined),
  };
}
