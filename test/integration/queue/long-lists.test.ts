import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { watchLoop } from '../../support/loop-watch.js';
import { queueNamespace } from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

/** Of schedules 100 MB of bodies; a gateway that holds the list as a whole has that several times. */
const GROUPS = 20_000;
const SCHEDULES = 10_000;
const BODY = 10_000;
const QUEUES = 20_000;
const MIB = 1024 * 1024;

const names = queueNamespace({ maxSchedules: SCHEDULES, maxTopics: GROUPS });
let gateway: RunningGateway;

beforeAll(async () => {
  gateway = await startGateway({ queue: names.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
  await names.query(
    `insert into $schema.schedules (id, cron, destination, controls, headers, body, paused, created_at)
      select 'scd_' || lpad(i::text, 7, '0'), '0 0 1 1 *', 'https://example.com/', '{"upstash-cron":"0 0 1 1 *"}', '{}',
        convert_to(repeat(chr(97 + i % 26), ${BODY}), 'UTF8'), true, now() + i % 100 * interval '1 second'
      from generate_series(1, ${SCHEDULES}) i`,
  );
  await names.query(
    `insert into $schema.url_groups (name) select 'group-' || lpad(i::text, 7, '0') from generate_series(1, ${GROUPS}) i`,
  );
  await names.query(
    `insert into $schema.endpoints (group_name, url, name)
      select name, 'https://example.com/' || i, 'n' || i from $schema.url_groups, generate_series(1, 2) i`,
  );
  await names.query(
    `insert into $schema.queues (name) select 'queue-' || lpad(i::text, 7, '0') from generate_series(1, ${QUEUES}) i`,
  );
  await names.query('analyze $schema.schedules, $schema.url_groups, $schema.endpoints, $schema.queues');
}, 300_000);

afterAll(async () => {
  await gateway?.stop();
  await names.remove();
});

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes that the gateway, which is in this process, has in use. */
function inUse(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

interface Listed {
  readonly status: number | undefined;
  readonly found: ReadonlySet<string>;
  /** What the gateway held for the list more than before while its reader took nothing, in MiB. */
  readonly held: number;
}

/** Reads a list, with a rest after its first piece, and keeps of it only what `pattern` finds. */
function read(path: string, pattern: RegExp): Promise<Listed> {
  const before = inUse();
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${TOKENS.queue}` };
    const request = get(`${gateway.url}/queue${path}`, { headers }, (response) => {
      const found = new Set<string>();
      let held: number | undefined;
      let rest = '';
      response.setEncoding('latin1').on('data', (chunk: string) => {
        const text = rest + chunk;
        for (const [match] of text.matchAll(pattern)) found.add(match);
        rest = text.slice(-40);
        if (held !== undefined) return;
        held = 0;
        response.pause();
        void sleep(1_000).then(() => {
          held = (inUse() - before) / MIB;
          response.resume();
        });
      });
      response.on('end', () => resolve({ status: response.statusCode, found, held: held ?? 0 }));
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}

it.each([
  ['/v2/schedules', /"scd_\d{7}"/g, SCHEDULES],
  ['/v2/topics', /"group-\d{7}"/g, GROUPS],
  ['/v2/queues', /"queue-\d{7}"/g, QUEUES],
])('%s is read in steps, as fast as its reader takes it', async (path, pattern, count) => {
  const watch = watchLoop();
  const { status, found, held } = await read(path, pattern);
  watch.end();
  expect({ status, count: found.size }).toEqual({ status: 200, count });
  // a hundred schedules are of each time, and those of one time go by their ids
  const rank = (id: string) => (path === '/v2/schedules' ? id.slice(-3, -1) : '') + id;
  const ids = [...found];
  expect(ids).toEqual(ids.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1)));
  expect(held).toBeLessThan(20);
  // among it the full collections that inUse() asks for
  expect(watch.longestMs()).toBeLessThan(2_000);
});

it.each([
  ['/v2/schedules', 'schedules'],
  ['/v2/topics', 'url_groups'],
  ['/v2/queues', 'queues'],
])('%s says what keeps it from being read', async (path, table) => {
  const locked = names.query(
    `do $do$ begin lock table $schema.${table} in access exclusive mode; perform pg_sleep(4); end $do$`,
  );
  await eventually(async () => {
    const reply = await fetch(`${gateway.url}/queue${path}`, {
      headers: { authorization: `Bearer ${TOKENS.queue}` },
      signal: AbortSignal.timeout(10_000),
    });
    expect([reply.status, await reply.text()]).toEqual([503, expect.stringMatching(/took too long/)]);
  }).finally(() => locked);
});

it('listings that hang keep to a quarter of the connections', async () => {
  const locked = names.query(
    'do $do$ begin lock table $schema.dead_letters in access exclusive mode; perform pg_sleep(8); end $do$',
  );
  const waiting = async () => {
    const [row] = await names.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity
        where application_name = 'portico queue' and wait_event_type = 'Lock' and query like '%$schema%'`,
    );
    return row?.n ?? 0;
  };
  const headers = { authorization: `Bearer ${TOKENS.queue}` };
  try {
    const listings = Array.from({ length: 30 }, () => fetch(`${gateway.url}/queue/v2/dlq`, { headers }));
    await eventually(async () => expect(await waiting()).toBeGreaterThan(0));
    // two of ten, and what looks after the tables by itself
    for (let looks = 0; looks < 5; looks++) expect(await waiting()).toBeLessThan(6);
    for (const { status, headers: told } of await Promise.all(listings)) {
      expect([200, 503]).toContain(status);
      if (status === 503) expect(told.get('retry-after')).not.toBeNull();
    }
  } finally {
    await locked;
  }
});
