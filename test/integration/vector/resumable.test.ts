import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_resumable';

const document = {
  vector: {
    database: { schema: SCHEMA },
    indexes: [
      { name: 'dense', path: '/dense', dimension: 2, token: TOKENS.vector },
      // without a read-only token, which would have its half
      {
        name: 'small',
        path: '/small',
        dimension: 2,
        token: TOKENS.vector,
        readOnlyToken: null,
        maxResumableQueries: 5,
      },
      { name: 'hybrid', path: '/hybrid', type: 'HYBRID', dimension: 2, token: TOKENS.vector },
    ],
  },
};

const gateways: RunningGateway[] = [];
const start = async () => {
  const gateway = await startGateway(document);
  gateways.push(gateway);
  return gateway;
};
const at = (gateway: RunningGateway, name: string) => vectorCaller(`${gateway.url}/${name}`);

let dense: ReturnType<typeof vectorCaller>;
let small: ReturnType<typeof vectorCaller>;
let hybrid: ReturnType<typeof vectorCaller>;

beforeAll(async () => {
  await dropSchema(SCHEMA);
  const gateway = await start();
  dense = at(gateway, 'dense');
  small = at(gateway, 'small');
  hybrid = at(gateway, 'hybrid');
});

afterEach(() => withPostgres((client) => client.query(`delete from ${SCHEMA}.resumable_queries`)));

afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  await dropSchema(SCHEMA);
});

interface Entry {
  id: string;
  score: number;
}

interface Started {
  uuid: string;
  scores: Entry[];
}

const idsOf = (entries: Entry[]) => entries.map(({ id }) => id);
const begin = async (index: typeof dense, path: string, body: object) => {
  const { status, result } = await index(path, body);
  expect(status).toBe(200);
  return result as Started;
};
const next = async (index: typeof dense, uuid: string, additionalK: number) =>
  (await index('/resumable-query-next', { uuid, additionalK })).result as Entry[];

test('goes on to the end without repeats and in order, whatever is written meanwhile, on any gateway', async () => {
  const records = Array.from({ length: 50 }, (_, i) => ({
    id: `r${i}`,
    vector: [1, i],
    metadata: { even: i % 2 === 0 },
  }));
  await dense('/upsert/run', records);
  const ask = { vector: [1, 0], topK: 5, filter: 'even = true', includeMetadata: true };
  const { uuid, scores } = await begin(dense, '/resumable-query/run', ask);
  expect(idsOf(scores)).toEqual(['r0', 'r2', 'r4', 'r6', 'r8']);
  expect(scores[0]).toEqual({ id: 'r0', score: 1, metadata: { even: true } });
  await dense('/delete/run', ['r0', 'r10']);
  await dense('/upsert/run', [{ id: 'r12', vector: [1, 12], metadata: { even: true } }]);
  expect(idsOf(await next(dense, uuid, 3))).toEqual(['r12', 'r14', 'r16']);
  // another gateway, and one that was started later, go on with it
  const second = at(await start(), 'dense');
  expect(idsOf(await next(second, uuid, 2))).toEqual(['r18', 'r20']);
  const rest = await next(dense, uuid, 1_000);
  expect(idsOf(rest)).toEqual(Array.from({ length: 14 }, (_, i) => `r${22 + 2 * i}`));
  expect(await next(dense, uuid, 10)).toEqual([]);
  expect((await dense('/resumable-query-end', { uuid })).result).toBe('Success');
  for (const [path, body] of [
    ['/resumable-query-next', { uuid, additionalK: 1 }],
    ['/resumable-query-end', { uuid }],
    ['/resumable-query-end', { uuid: 'forged' }],
    ['/resumable-query-next', { uuid: "'; drop schema x; --", additionalK: 1 }],
  ] as const)
    expect((await dense(path, body)).status).toBe(404);
});

test('calls at the same time share the records among them', async () => {
  await dense(
    '/upsert/shared',
    Array.from({ length: 40 }, (_, i) => ({ id: `r${i}`, vector: [1, i] })),
  );
  const { uuid, scores } = await begin(dense, '/resumable-query/shared', { vector: [1, 0], topK: 4 });
  const parts = await Promise.all(Array.from({ length: 12 }, () => next(dense, uuid, 3)));
  const seen = idsOf([...scores, ...parts.flat()]);
  expect([seen.length, new Set(seen).size]).toEqual([40, 40]);
});

test('a hybrid one takes just so many from each list, and skips what was there before', async () => {
  const records = Array.from({ length: 12 }, (_, i) => ({
    id: `r${i}`,
    vector: [1, i],
    sparseVector: { indices: [1], values: [i + 1] },
  }));
  await hybrid('/upsert/run', records);
  const ask = { vector: [1, 0], sparseVector: { indices: [1], values: [1] }, topK: 2 };
  const { uuid, scores } = await begin(hybrid, '/resumable-query/run', ask);
  expect(idsOf(scores)).toEqual(['r0', 'r11']);
  expect(idsOf(await next(hybrid, uuid, 2))).toEqual(['r1', 'r10']);
  expect(idsOf(await next(hybrid, uuid, 4))).toEqual(['r2', 'r9', 'r3', 'r8']);
  expect(await next(hybrid, uuid, 100)).toHaveLength(4);
});

test('ends when nobody asks for it, when its namespace is emptied, and follows a renamed one', async () => {
  const fill = (name: string) =>
    dense(`/upsert/${name}`, [
      { id: 'a', vector: [1, 0] },
      { id: 'b', vector: [1, 1] },
    ]);
  await fill('idle');
  const short = await begin(dense, '/resumable-query/idle', { vector: [1, 0], topK: 1, maxIdle: 0.05 });
  await eventually(async () =>
    expect((await dense('/resumable-query-end', { uuid: short.uuid })).status).toBe(404),
  );
  await fill('old');
  const moved = await begin(dense, '/resumable-query/old', { vector: [1, 0], topK: 1 });
  await dense('/rename-namespace', { namespace: 'old', newNamespace: 'new' });
  expect(idsOf(await next(dense, moved.uuid, 5))).toEqual(['b']);
  const emptied = await begin(dense, '/resumable-query/new', { vector: [1, 0], topK: 1 });
  await dense('/reset/new', []);
  expect((await dense('/resumable-query-next', { uuid: emptied.uuid, additionalK: 1 })).status).toBe(404);
  const nowhere = await begin(dense, '/resumable-query/nowhere', { vector: [1, 0], topK: 1 });
  expect(nowhere.scores).toEqual([]);
  expect(await next(dense, nowhere.uuid, 5)).toEqual([]);
});

test('so many may be open, however many begin at once, and those whose time is over make room', async () => {
  const body = { vector: [1, 0], topK: 1 };
  const short = await begin(small, '/resumable-query', { ...body, maxIdle: 5 });
  const replies = await Promise.all(
    Array.from({ length: 20 }, () => small('/resumable-query', { ...body, maxIdle: 600 })),
  );
  const taken = replies.filter(({ status }) => status === 200);
  expect(taken).toHaveLength(4);
  for (const { status, headers } of replies.filter((reply) => !taken.includes(reply)))
    expect([status, headers.get('retry-after')]).toEqual([429, '60']);
  const { uuid } = taken.map(({ result }) => result as Started)[0] as Started;
  expect((await small('/resumable-query-end', { uuid })).status).toBe(200);
  expect((await small('/resumable-query', body)).status).toBe(200);
  await eventually(async () => expect((await small('/resumable-query', body)).status).toBe(200));
  expect((await small('/resumable-query-next', { uuid: short.uuid, additionalK: 1 })).status).toBe(404);
});

test.each<[object, number, RegExp]>([
  [{ vector: [1, 0], topK: 0 }, 400, /topK/],
  [{ vector: [1, 0], maxIdle: 0 }, 400, /maxIdle/],
  [{ vector: [1, 0], maxIdle: 1e9 }, 400, /maxIdle/],
  [{ vector: [1, 0], topK: 1_001 }, 422, /more than the limit of 1000/],
  [{ vector: [1] }, 422, /Invalid vector dimension: 1, expected: 2/],
  [{ vector: [1, 0], filter: 'x' }, 400, /column 2/],
])('%j is refused', async (body, status, message) => {
  const reply = await dense('/resumable-query', body);
  expect([reply.status, reply.error]).toEqual([status, expect.stringMatching(message)]);
});
