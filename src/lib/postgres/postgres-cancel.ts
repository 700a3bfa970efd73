import type pg from 'pg';

/** Why a statement was not run: the request that wanted it is over. Nobody is left to be told. */
export class RequestOver extends Error {
  // as Postgres calls it when it cancels a statement
  readonly code = '57014';

  constructor() {
    super('the request is over');
    this.name = 'RequestOver';
  }
}

export interface Cancelling {
  /** Stops listening; resolves, when none is on its way any more, to whether a cancellation was sent. */
  release(): Promise<boolean>;
}

/**
 * When `signal` aborts, asks Postgres to cancel what `client` is running. A dropped wait alone would leave the statement
 * running until its own time-out, and its connection with it.
 * @param beside makes a connection to the same server outside the pool, which may have none left
 */
export function cancelOnAbort(
  client: pg.ClientBase,
  signal: AbortSignal,
  beside: (other: pg.ClientBase) => pg.Client,
): Cancelling {
  let cancellation: Promise<void> | undefined;
  const onAbort = () => {
    cancellation = cancel(client, beside(client));
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort);
  return {
    release: async () => {
      signal.removeEventListener('abort', onAbort);
      await cancellation;
      return cancellation !== undefined;
    },
  };
}

/** Where no connection can be had, the statement's own time-out has to do. */
async function cancel(client: pg.ClientBase, messenger: pg.Client): Promise<void> {
  // the one field that node-postgres' types leave out
  const { processID } = client as unknown as { processID: number | null };
  messenger.on('error', () => undefined);
  try {
    await messenger.connect();
    await messenger.query('select pg_cancel_backend($1)', [processID]);
  } catch {
    // see above
  } finally {
    await messenger.end().catch(() => undefined);
  }
}
