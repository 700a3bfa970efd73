import { setTimeout as sleep } from 'node:timers/promises';
import type { Queryable } from './postgres-database.js';
import { classifyDatabaseError } from './postgres-errors.js';

/** Times that a statement is repeated, and the pause before each, in ms: longer than the database is busy with another's peak. */
const [TIMES, PAUSE_MS] = [4, 500];

/**
 * Reads for a reply whose first part is sent: to break it off is all that could be said of a statement that fails, so one that
 * took too long or had no connection is repeated.
 * @param hasBegun whether the reply has; until then a failure is told at once
 */
export function readAgain(database: Queryable, hasBegun: () => boolean): Queryable {
  return {
    query: async (...statement) => {
      for (let times = 0; ; times++) {
        try {
          return await database.query(...(statement as Parameters<Queryable['query']>));
        } catch (error) {
          const { kind } = classifyDatabaseError(error);
          if (times === TIMES || !hasBegun() || (kind !== 'timeout' && kind !== 'unavailable')) throw error;
          await sleep(PAUSE_MS);
        }
      }
    },
  } as Queryable;
}
