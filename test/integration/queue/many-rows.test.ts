import { amount } from '../../support/amount.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { publish, queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

/** Clean-up, control calls and listings where there are very many rows of what they look at: a million in `npm run test:full`. */
const ROWS = amount(100_000, 1_000_000);
/** Of the messages that wait, those in the ordered queue `big`, under the flow-control key `kept`, and let in under it. */
const QUEUED = ROWS * 0.3;
const KEYED = ROWS * 0.5;
const ADMITTED = ROWS * 0.05;
const DAY = `interval '1 day'`;

const names = queueNamespace({ logRetention: 3_600, retention: 30 * 86_400 });
let gateway: RunningGateway;
let receiver: Receiver;

const columns = `id, state, prefix, url, method, headers, body, max_retries, not_before, created_at, due_at, sweep_at,
  held, queue_name, flow_key, finished_at, details, dead, failure_status, failure_headers, failure_body`;

interface Rows {
  readonly id: string;
  readonly from?: number;
  readonly to: number;
  readonly state: string;
  readonly held?: string;
  readonly queue?: string;
  readonly key?: string;
  readonly finished?: string;
  readonly details?: string;
  readonly dead?: boolean;
}

/** Messages `i` of a series. */
function messages({ id, from = 1, to, state, held, queue, key, finished, details, dead }: Rows): string {
  const failure = dead ? `500, '{}'::json, '\\x6e6f'::bytea` : 'null, null::json, null::bytea';
  return `insert into $schema.messages (${columns})
    select '${id}' || lpad(i::text, 12, '0'), '${state}', 'Upstash', '${receiver.url}/' || i, 'POST', '{}', '\\x68656c6c6f', 0,
      0, 0, now() + ${DAY}, ${held === undefined ? `now() + ${DAY}` : `'infinity'`}, ${sqlText(held)}, ${sqlText(queue)}, ${sqlText(key)},
      ${finished ?? 'null'}, ${sqlText(details)}, ${dead === true}, ${failure}
    from generate_series(${from}, ${to}) i`;
}

const sqlText = (text: string | undefined) => (text === undefined ? 'null' : `'${text}'`);

async function fill(): Promise<void> {
  const old = `now() - ${DAY}`;
  const rare = '{"labels":["rare"]}';
  const common = '{"labels":["common"]}';
  const parts = [
    messages({ id: 'msg_w', to: ROWS - QUEUED - KEYED - ADMITTED - 2, state: 'CREATED', details: common }),
    messages({ id: 'msg_k', to: KEYED, state: 'CREATED', held: 'flow', key: 'kept' }),
    messages({ id: 'msg_l', to: ADMITTED, state: 'CREATED', key: 'kept' }),
    `insert into $schema.flow_running (message_id, key, claims)
      select id, 'kept', 1 from $schema.messages where flow_key = 'kept' and held is null`,
    messages({ id: 'msg_x', to: 2, state: 'CREATED', details: rare }),
    messages({ id: 'msg_q', to: QUEUED, state: 'CREATED', held: 'order', queue: 'big' }),
    `insert into $schema.queues (name, paused) values ('big', true), ('small', false)`,
    messages({ id: 'msg_d', to: ROWS - 3, state: 'FAILED', finished: old, dead: true, details: common }),
    messages({ id: 'msg_e', to: 3, state: 'FAILED', finished: old, dead: true, details: rare }),
    `insert into $schema.dead_letters (id, message_id, created_at)
      select '1-' || row_number() over (order by id), id, ${old} + row_number() over (order by id) * interval '1 millisecond'
      from $schema.messages where dead`,
    // they ended after all that are dead: whoever goes through these first never comes to them
    messages({ id: 'msg_z', to: 5_000, state: 'DELIVERED', finished: `now() - interval '2 hours'` }),
    `insert into $schema.events (message_id, state) select id, 'FAILED' from $schema.messages where dead`,
    `insert into $schema.deduplication (key, message_id, expires_at)
      select 'key' || i, 'msg_d', now() - ${DAY} from generate_series(1, ${ROWS / 10}) i`,
    `insert into $schema.flow_controls (key, rate, period_start)
      select 'idle' || i, 1, now() - ${DAY} from generate_series(1, 10000) i`,
    `insert into $schema.flow_controls (key, paused, period_start) values ('kept', true, now() - ${DAY})`,
  ];
  const { drop, create } = await keysAndIndexes();
  for (const sql of [...drop, ...parts, ...create]) await names.query(sql);
  await names.query('analyze $schema.messages, $schema.dead_letters, $schema.events');
}

/** Statements that take away what makes bulk inserts slow, and that bring it back: one by one it takes ten times as long. */
async function keysAndIndexes(): Promise<{ drop: string[]; create: string[] }> {
  const constraints = await names.query<{ table: string; name: string; definition: string }>(
    `select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as definition from pg_constraint
      where contype in ('p', 'u', 'f') and conrelid in ('$schema.messages'::regclass, '$schema.dead_letters'::regclass)
      order by contype = 'f' desc`,
  );
  const indexes = await names.query<{ name: string; definition: string }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index i
      where indrelid in ('$schema.messages'::regclass, '$schema.dead_letters'::regclass)
        and not exists (select from pg_constraint where conindid = i.indexrelid and contype in ('p', 'u'))`,
  );
  const restored = constraints.map(({ table, name, definition }) => {
    // no check of what is there
    const unchecked = definition.startsWith('FOREIGN') ? ' not valid' : '';
    return `alter table ${table} add constraint ${name} ${definition}${unchecked}`;
  });
  return {
    drop: [
      ...constraints.map(({ table, name }) => `alter table ${table} drop constraint ${name}`),
      ...indexes.map(({ name }) => `drop index ${name}`),
    ],
    create: [...restored.reverse(), ...indexes.map(({ definition }) => definition)],
  };
}

const call = async (method: string, path: string) => {
  const answer = await fetch(`${gateway.url}/queue${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, never> };
};

/** Calls with the cursors of the replies until there is none. @returns the replies' bodies */
async function allPages(method: string, path: string): Promise<Record<string, never>[]> {
  const bodies: Record<string, never>[] = [];
  for (let cursor = ''; ; ) {
    const { status, body } = await call(method, `${path}${cursor && `&cursor=${cursor}`}`);
    expect([path, status, body]).toEqual([path, method === 'POST' ? 201 : 200, body]);
    bodies.push(body);
    cursor = (body as { cursor?: string }).cursor ?? '';
    if (cursor === '') return bodies;
  }
}

/** Calls again behind the cursor that the error names, as long as a search had no time to look at all messages. */
async function cancelAll(path: string): Promise<unknown> {
  for (let cursor = ''; ; ) {
    const { status, body } = await call('DELETE', `${path}${cursor}`);
    const next = /cursor=(\w+)/.exec((body as { error?: string }).error ?? '')?.[1];
    if (status !== 503 || next === undefined) return body;
    cursor = `&cursor=${next}`;
  }
}

const count = async (what: string) =>
  Number((await names.query<{ count: string }>(`select count(*) from $schema.${what}`))[0]?.count);

async function start(change: Record<string, unknown> = {}): Promise<void> {
  gateway = await startGateway({ queue: { ...names.config, ...change } });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
}

beforeAll(async () => {
  receiver = await startReceiver();
  await start();
  await gateway.stop();
  await fill();
  await start();
}, 900_000);

afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await names.remove();
});

it('what is old goes although many dead letters are kept', async () => {
  await eventually(async () => {
    expect(await count(`messages where state = 'DELIVERED'`)).toBe(0);
    expect(await count('deduplication')).toBe(0);
    expect(await count('flow_controls')).toBe(1);
  });
  expect(await count('dead_letters')).toBe(ROWS);
});

it('shows how many messages wait for what, and how many dead letters there are', async () => {
  await eventually(async () => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    const value = (name: string) =>
      Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${name} `))
          ?.split(' ')[1],
      );
    const messages = (state: string) => value(`portico_queue_messages{state="${state}"}`);
    expect([messages('waiting'), messages('order'), messages('flow')]).toEqual([
      ROWS - QUEUED - KEYED,
      QUEUED,
      KEYED,
    ]);
    expect(value('portico_queue_dead_letters')).toBe(ROWS);
  }, 120_000);
});

it('finds, sends again and removes the few dead letters that fit a filter', async () => {
  const pages = await allPages('GET', '/v2/dlq?label=rare');
  expect(pages.flatMap(({ messages }) => messages)).toHaveLength(3);
  const again = await allPages('POST', `/v2/dlq/retry?url=${receiver.url}/1&label=rare`);
  expect(again.flatMap(({ responses }) => responses)).toHaveLength(1);
  await eventually(() => expect(receiver.received.map(({ url }) => url)).toContain('/1'));
  const removed = await allPages('DELETE', '/v2/dlq?label=rare');
  expect(removed.reduce((sum, { deleted }) => sum + Number(deleted), 0)).toBe(2);
});

it('cancels the few messages that fit, and says when there are none', async () => {
  expect(await cancelAll('/v2/messages?label=rare')).toEqual({ cancelled: 2 });
  expect(await cancelAll('/v2/messages?label=rare')).toEqual({ cancelled: 0 });
  expect(await call('DELETE', '/v2/messages?queueName=small&host=x')).toMatchObject({
    status: 200,
    body: { cancelled: 0 },
  });
});

it('lists the log by a filter that nothing fits', async () => {
  expect((await allPages('GET', '/v2/events?label=none')).flatMap(({ events }) => events)).toEqual([]);
});

it('counts what is under way', async () => {
  expect((await call('GET', '/v2/globalParallelism')).body).toMatchObject({ parallelismCount: 0 });
});

it('counts what waits under a flow-control key, and what it has let in', async () => {
  const kept = { flowControlKey: 'kept', waitListSize: KEYED, parallelismCount: ADMITTED };
  expect(await call('GET', '/v2/flowControl/kept')).toMatchObject({ status: 200, body: kept });
  expect(await call('GET', '/v2/flowControl')).toMatchObject({ status: 200, body: [kept] });
});

it('counts, and deletes, a long queue; a new one of the same name is not touched by that', async () => {
  expect((await call('GET', '/v2/queues/big')).body).toMatchObject({ lag: QUEUED });
  expect((await call('GET', '/v2/queues')).body).toMatchObject([{ lag: QUEUED }, { lag: 0 }]);
  expect((await call('DELETE', '/v2/queues/big')).status).toBe(200);
  expect((await call('GET', '/v2/queues/big')).status).toBe(404);
  const reply = await fetch(`${gateway.url}/queue/v2/enqueue/big/${receiver.url}/fresh`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });
  expect(reply.status).toBe(200);
  await eventually(() => expect(receiver.received.map(({ url }) => url)).toContain('/fresh'));
  await eventually(async () => expect(await count('queue_deletions')).toBe(0), 200_000);
  // the new one has arrived, and its outcome is about to be written
  await eventually(async () =>
    expect(await count(`messages where queue_name = 'big' and finished_at is null`)).toBe(0),
  );
  expect((await call('GET', '/v2/queues/big')).body).toMatchObject({ lag: 0 });
});

it('delivers while many dead letters go', async () => {
  await gateway.stop();
  await start({ retention: 60 });
  await eventually(async () => expect(await count('dead_letters')).toBeLessThan(ROWS * 0.99));
  expect((await publish(gateway, `${receiver.url}/meanwhile`)).status).toBe(200);
  await eventually(() => expect(receiver.received.map(({ url }) => url)).toContain('/meanwhile'));
});
