import { openDatabase } from '../../lib/postgres/postgres.js';
import type { StartedService } from '../service.js';
import { queueSettings } from './settings.js';

/** Tables that hold no state of a test. */
const KEPT = ['signing_keys', 'migrations'];

/** Every message goes at once: it may be many. */
const STATEMENT_MS = 30_000;
const CONNECT_MS = 5_000;

/** What is under way is cancelled by the service; what it remembers of the past is then dropped. */
export async function resetQueue({ call, variables, log, lifecycle }: StartedService): Promise<void> {
  const cancel = async () => (await call('DELETE', '/v2/messages')) as { readonly cancelled: number };
  while ((await cancel()).cancelled > 0);
  const database = openDatabase({
    url: variables.PORTICO_DATABASE_URL ?? '',
    poolSize: 1,
    statementTimeoutMs: STATEMENT_MS,
    connectTimeoutMs: CONNECT_MS,
    applicationName: 'portico reset',
    log,
    lifecycle,
  });
  const { rows } = await database.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname = $1 and tablename <> all($2)`,
    [queueSettings.parse({}).schema, KEPT],
  );
  await database.query(`truncate ${rows.map(({ name }) => name).join(', ')}`);
}
