import { Client } from '@upstash/workflow';
import fc from 'fast-check';
import { eventually } from '../../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../../support/gateway.js';
import { foreignBodies } from '../../../support/queue/foreign-bodies.js';
import { type QueueNamespace, queueNamespace } from '../../../support/queue/queue.js';
import { TOKENS } from '../../../support/tokens.js';

/** Runs that wait an hour for their first step, cancelled by what names them and by nothing else. */
let names: QueueNamespace;
let gateway: RunningGateway;

const HOST = 'http://127.0.0.1:9';

async function call(method: string, path: string, body?: string): Promise<{ status: number; body: never }> {
  const answer = await fetch(`${gateway.url}/queue${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.queue}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body }),
  });
  return { status: answer.status, body: (await answer.json()) as never };
}

const cancel = (query: string, body?: string) => call('DELETE', `/v2/workflows/runs${query}`, body);

let runs = 0;

async function start(
  path: string,
  headers: Record<string, string> = {},
  id = `wfr_${++runs}`,
): Promise<string> {
  const destination = `${HOST}${path}`;
  const entry = {
    destination,
    headers: {
      'upstash-workflow-init': 'true',
      'upstash-workflow-runid': id,
      'upstash-workflow-url': destination,
      'upstash-delay': '1h',
      ...headers,
    },
    body: '{}',
  };
  expect((await call('POST', '/v2/batch', JSON.stringify([entry]))).status).toBe(200);
  return id;
}

const underWay = async () =>
  (
    await names.query<{ id: string }>(
      'select id from $schema.workflow_runs where ended_at is null order by no',
    )
  ).map(({ id }) => id);

beforeAll(async () => {
  names = queueNamespace();
  gateway = await startGateway({ queue: names.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200), 60_000);
});

afterAll(async () => {
  await gateway?.stop();
  await names.remove();
});

/** A body that bounds by number, time or the end of a search alone names everything within it, on purpose. */
const namesMany = (body: string) => /"(count|fromDate|toDate|cursor)"/.test(body);

const KEYS = [
  ...[
    'workflowRunIds',
    'workflowUrl',
    'workflowUrlExactMatch',
    'label',
    'flowControlKey',
    'callerIp',
    'host',
  ],
  ...[
    'path',
    'fromDate',
    'toDate',
    'count',
    'cursor',
    'workflowRunId',
    'ids',
    'all',
    'cancel',
    '__proto__',
    '',
  ],
];
const foreign = foreignBodies(KEYS);

describe('what names no run cancels none', () => {
  let there: string[];

  beforeAll(async () => {
    there = [
      await start('/a', { 'upstash-label': 'red' }),
      await start('/b', { 'upstash-flow-control-key': 'k', 'upstash-flow-control-value': 'parallelism=5' }),
      await start('/c'),
    ];
  });
  afterAll(async () => {
    expect((await cancel('')).body).toEqual({ cancelled: 3 });
  });

  it('whatever a body holds', async () => {
    await fc.assert(
      fc.asyncProperty(
        foreign.filter((body) => !namesMany(body)),
        async (body) => {
          const answer = await cancel('', body);
          expect([200, 400]).toContain(answer.status);
          if (answer.status === 200) expect(answer.body).toEqual({ cancelled: 0 });
        },
      ),
      { numRuns: 200 },
    );
    expect(await underWay()).toEqual(there);
  });

  it.each([
    ['', '{}'],
    ['', 'null'],
    ['', '["wfr_1"]'],
    ['', '{"workflowRunIds":null}'],
    ['', '{"workflowRunIds":[null]}'],
    ['', '{"workflowRunIds":["wfr_1"],"label":null}'],
    ['', '{"workflowRunIds":["wfr_1"],"fromDate":"yesterday"}'],
    ['', '{"workflowRunId":"wfr_1"}'],
    ['', '{"workflowUrl":""}'],
    ['', '{"workflowUrl":[]}'],
    ['', '{"workflowUrl":5}'],
    ['', '{"workflowUrlExactMatch":true}'],
    ['', `{"workflowUrl":"${HOST}","workflowUrlExactMatch":"yes"}`],
    ['', '{"label":null}'],
    ['', '{"label":[]}'],
    ['', '{"callerIp":""}'],
    ['', '{"count":0}'],
    ['', '{"count":501}'],
    ['', '{"fromDate":null}'],
    ['', '{"cursor":"x"}'],
    // lists that somebody forgot to fill in
    ['', '{"toDate":[]}'],
    ['', '{"fromDate":[]}'],
    ['', '{"count":[]}'],
    ['', '{"cursor":[]}'],
    ['/', undefined],
    ['?all=true', undefined],
    ['?label=', undefined],
    ['?fromDate=1&fromDate=2', undefined],
    ['?count=1&count=2', undefined],
    ['', '{"count":[1,2]}'],
    ['?workflowUrl=', undefined],
    ['?workflowUrl=%20', undefined],
    ['/?cancel=true', undefined],
    ['?cancel=false', '{"my":"result"}'],
  ])('%s with body %s is refused', async (query, body) => {
    const answer = await cancel(query, body);
    expect([answer.status, answer.body]).toEqual([400, { error: expect.any(String) }]);
    expect(await underWay()).toEqual(there);
  });

  it.each([
    ['?workflowRunIds=', undefined],
    ['', '{"workflowRunIds":[]}'],
    ['', '{"workflowRunIds":[],"label":"red"}'],
    ['?workflowRunIds=wfr_none', undefined],
    [`?workflowUrl=${HOST}/&workflowUrlExactMatch=true`, undefined],
    ['', `{"workflowUrl":"${HOST}/a/"}`],
    ['', '{"label":"red,blue"}'],
    ['?toDate=1000', undefined],
    ['?callerIp=10.1.2.3', undefined],
  ])('%s with body %s fits none', async (query, body) => {
    expect(await cancel(query, body)).toEqual({ status: 200, body: { cancelled: 0 } });
    expect(await underWay()).toEqual(there);
  });
});

describe('what names runs', () => {
  afterEach(async () => {
    await cancel('');
    expect(await underWay()).toEqual([]);
  });

  const client = () => new Client({ baseUrl: `${gateway.url}/queue`, token: TOKENS.queue });

  it('ids: those under way, whatever stands beside them; their messages are cancelled, and ended ones do not count', async () => {
    const [one, two, three] = [await start('/x'), await start('/x'), await start('/x')];
    expect((await call('DELETE', `/v2/workflows/runs/${one}?cancel=true`)).body).toEqual({ cancelled: 1 });
    expect((await call('DELETE', `/v2/workflows/runs/${one}?cancel=true`)).status).toBe(404);
    const body = JSON.stringify({ workflowRunIds: [one, two, 'wfr_none'], label: 'other' });
    expect((await cancel('', body)).body).toEqual({ cancelled: 1 });
    expect(await underWay()).toEqual([three]);
    const messages = await names.query<{ state: string }>(
      `select m.state from $schema.messages m join $schema.workflow_runs r on r.no = m.run_no
        where r.id = any($1::text[]) order by m.seq`,
      [[one, two, three]],
    );
    expect(messages.map(({ state }) => state)).toEqual(['CANCELED', 'CANCELED', 'CREATED']);
    expect(await client().cancel([three])).toEqual({ cancelled: 1 });
    // an id that is used again means the run that is under way
    await start('/x', {}, three);
    expect(await client().cancel({ ids: three })).toEqual({ cancelled: 1 });
    expect(await client().cancel(three)).toEqual({ cancelled: 0 });
  });

  it('URLs: their beginning or all of it, from the SDK, the query and a body', async () => {
    const [a, ab, b] = [await start('/u/a'), await start('/u/a/b'), await start('/u/_')];
    expect(await client().cancel({ filter: { workflowUrl: `${HOST}/u/a` } })).toEqual({ cancelled: 1 });
    expect(await underWay()).toEqual([ab, b]);
    // no pattern: an underscore is one
    expect((await cancel(`?workflowUrl=${HOST}/u/_`)).body).toEqual({ cancelled: 1 });
    expect(await client().cancel({ filter: { workflowUrlStartingWith: `${HOST}/u/` } })).toEqual({
      cancelled: 1,
    });
    const again = await start('/u/a', {}, a);
    const exact = (workflowUrl: string) => JSON.stringify({ workflowUrl, workflowUrlExactMatch: true });
    expect((await cancel('', exact(`${HOST}/u/`))).body).toEqual({ cancelled: 0 });
    expect(await underWay()).toEqual([again]);
    expect((await cancel('', exact(`${HOST}/u/a`))).body).toEqual({ cancelled: 1 });
    await start('/u/c');
    expect(await client().cancel({ urlStartingWith: HOST })).toEqual({ cancelled: 1 });
  });

  it('label, flow-control key, address, host, path and times; several must all fit', async () => {
    const flow = { 'upstash-flow-control-key': 'key', 'upstash-flow-control-value': 'parallelism=1' };
    const red = await start('/l', { 'upstash-label': 'red,blue' });
    const keyed = await start('/m', flow);
    expect((await cancel('?label=blue&flowControlKey=key')).body).toEqual({ cancelled: 0 });
    expect((await cancel('', '{"label":["green","blue"],"callerIp":"127.0.0.1"}')).body).toEqual({
      cancelled: 1,
    });
    expect(await underWay()).toEqual([keyed]);
    expect((await cancel('?flowControlKey=key&path=/l')).body).toEqual({ cancelled: 0 });
    expect((await cancel(`?flowControlKey=key&path=/m&host=127.0.0.1:9`)).body).toEqual({ cancelled: 1 });
    const old = await start('/t', {}, red);
    await names.query(
      'update $schema.workflow_runs set created_ms = created_ms - 60000 where id = $1 and ended_at is null',
      [old],
    );
    const young = await start('/t');
    const minuteAgo = Date.now() - 30_000;
    expect(await client().cancel({ filter: { toDate: new Date(minuteAgo) } })).toEqual({ cancelled: 1 });
    expect(await underWay()).toEqual([young]);
    expect((await cancel('', JSON.stringify({ fromDate: minuteAgo }))).body).toEqual({ cancelled: 1 });
  });

  it('all of them, at most as many as wanted', async () => {
    for (let i = 0; i < 5; i++) await start('/n');
    expect((await cancel('?count=2')).body).toEqual({ cancelled: 2 });
    expect((await cancel('', '{"count":1}')).body).toEqual({ cancelled: 1 });
    expect(await client().cancel({ all: true })).toEqual({ cancelled: 2 });
    expect(await client().cancel({ all: true })).toEqual({ cancelled: 0 });
  });
});
