import type { Database } from '../../../src/lib/postgres/postgres.js';
import { SharedConnections } from '../../../src/services/vector/shared-connections.js';

test('a place is kept until the reply is made of the rows, not only until they are there', async () => {
  const rows = { query: async () => ({ rows: [1], rowCount: 1 }) };
  const database = { within: () => rows } as unknown as Database;
  const shared = new SharedConnections(database, { poolSize: 3, statementTimeoutMs: 1_000 });
  const token = shared.of('one');
  const made: (() => void)[] = [];
  let read = 0;
  const all = Array.from({ length: 6 }, () =>
    token.hold(new AbortController().signal, 'query', async (connection) => {
      const { rowCount } = await connection.query('select 1');
      read += rowCount;
      await new Promise<void>((resolve) => made.push(resolve));
    }),
  );
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  for (let done = 0; done < 6; done++) {
    await settled();
    expect(read - done).toBeLessThanOrEqual(2);
    made.shift()?.();
  }
  await Promise.all(all);
  expect(read).toBe(6);
});
