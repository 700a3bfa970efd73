import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_managed';
const ADMIN = 'test-vector-administrator-0123456789';

interface Described {
  readonly path: string;
  readonly token: string;
  readonly readOnlyToken: string;
  readonly maxTopK: number;
  readonly status: string;
}

let gateway: RunningGateway;
let other: RunningGateway;

const start = () =>
  startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [{ name: 'declared', dimension: 2, token: TOKENS.vector }],
      adminToken: ADMIN,
      managed: { maxIndexes: 3 },
    },
  });

const admin = (path: string, method = 'GET', body?: unknown, token = ADMIN) =>
  vectorCaller(`${gateway.url}/vector/indexes`)(path, body, { method, token });

async function create(body: Record<string, unknown>): Promise<Described> {
  const reply = await admin('', 'POST', body);
  expect([reply.status, reply.text]).toEqual([200, expect.any(String)]);
  return reply.result as Described;
}

const at = ({ url }: RunningGateway, { path }: Described) => vectorCaller(url + path);

beforeAll(async () => {
  await dropSchema(SCHEMA);
  [gateway, other] = await Promise.all([start(), start()]);
});

afterAll(async () => {
  await Promise.all([gateway.stop(), other.stop()]);
  await dropSchema(SCHEMA);
});

test('an index is made, used in every gateway at once, changed and dropped', async () => {
  const films = await create({ name: 'films', dimension: 2, similarity: 'EUCLIDEAN' });
  expect(films).toMatchObject({ path: '/vector/indexes/films', status: 'up' });
  const { token, readOnlyToken } = films;
  const [here, there] = [at(gateway, films), at(other, films)];
  // the other gateway has not looked since
  expect((await there('/upsert/ns', { id: 'a', vector: [1, 0] }, { token })).result).toBe('Success');
  const nearest = await here('/query/ns', { vector: [1, 0] }, { token: readOnlyToken });
  expect(nearest.result).toEqual([{ id: 'a', score: 1 }]);
  expect((await here('/upsert', { id: 'b', vector: [1, 0] }, { token: readOnlyToken })).status).toBe(403);
  const lines = '{"id":"c","vector":[0,1]}\n';
  const ndjson = { token, headers: { 'content-type': 'application/x-ndjson' } };
  expect((await here('/upsert', lines, ndjson)).result).toBe('Success');

  const listed = (await admin('')).result as object[];
  expect(listed).toMatchObject([
    { name: 'declared', source: 'configuration', path: '/vector', status: 'up', vectorCount: 0 },
    { name: 'films', source: 'administrator', similarity: 'EUCLIDEAN', dimension: 2, vectorCount: 2 },
  ]);
  expect(JSON.stringify(listed)).not.toContain(token);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics).toContain('portico_vector_records_written_total{index="films"} 1');

  const altered = await admin('/films', 'PATCH', { maxTopK: 5, rotateTokens: true });
  expect(altered.result).toMatchObject({ maxTopK: 5, maxPage: 1_000 });
  const rotated = altered.result as Described;
  expect((await here('/info', undefined, { token })).status).toBe(401);
  await eventually(async () => expect((await there('/info', undefined, { token })).status).toBe(401));
  const tooMany = await there('/query', { vector: [1, 0], topK: 6 }, { token: rotated.token });
  expect(tooMany.status).toBe(422);

  expect((await admin('/films', 'DELETE')).result).toBe('Success');
  expect((await here('/info', undefined, { token: rotated.token })).status).toBe(401);
  expect((await admin('/films')).status).toBe(404);
  // the name is free at once, and what was dropped does not come back
  const again = await create({ name: 'films', dimension: 3 });
  expect((await there('/info', undefined, { token: again.token })).result).toMatchObject({
    dimension: 3,
    vectorCount: 0,
  });
  expect((await there('/info', undefined, { token: rotated.token })).status).toBe(401);
  await eventually(
    () =>
      withPostgres(async (client) => {
        const { rows } = await client.query(
          `select (select count(*) from pg_tables where schemaname = $1 and tablename like 'records\\_%')::int as tables,
             (select count(*) from ${SCHEMA}.indexes)::int as indexes`,
          [SCHEMA],
        );
        expect(rows).toEqual([{ tables: 2, indexes: 2 }]);
      }),
    20_000,
  );
});

test('tokens are for one index, and only the administrator makes one', async () => {
  const one = await create({ name: 'one', type: 'SPARSE', countWords: true });
  const two = await create({ name: 'two', type: 'HYBRID', dimension: 2, storage: 'halfvec' });
  expect((await at(gateway, one)('/info', undefined, { token: two.token })).status).toBe(401);
  expect((await at(gateway, one)('/info', undefined, { token: TOKENS.vector })).status).toBe(401);
  expect((await at(gateway, one)('/info', undefined, { token: ADMIN })).status).toBe(200);
  const forged = one.token.replace(/_f_/, '_r_');
  expect((await at(gateway, one)('/info', undefined, { token: forged })).status).toBe(401);
  expect((await at(gateway, one)('/upsert-data', { id: 'a', data: 'some words' }, one)).result).toBe(
    'Success',
  );
  expect((await admin('', 'POST', { name: 'three' }, one.token)).status).toBe(403);
  expect((await admin('', 'GET', undefined, one.token)).status).toBe(403);
  expect((await admin('', 'GET', undefined, TOKENS.vector)).status).toBe(401);
  // films, one and two
  expect(await admin('', 'POST', { name: 'more' })).toMatchObject({ status: 422 });
});

test.each([
  [{ name: 'declared', dimension: 2 }, 409],
  [{ name: 'one', dimension: 2 }, 409],
  [{ dimension: 2 }, 400],
  [{ name: 'a b', dimension: 2 }, 400],
  [{ name: 'wide', dimension: 5_000 }, 400],
  [{ name: 'links', hnsw: { m: 40, efConstruction: 64 } }, 400],
  [{ name: 'typo', dimensions: 2 }, 400],
])('%j is refused with %d and makes nothing', async (body, status) => {
  const before = (await admin('')).text;
  expect(await admin('', 'POST', body)).toMatchObject({ status, error: expect.any(String) });
  expect((await admin('')).text).toBe(before);
});

test('what does not fit together is not changed; unknown names are 404', async () => {
  expect((await admin('/two', 'PATCH', { hnsw: { m: 50 } })).status).toBe(400);
  expect((await admin('/two', 'PATCH', { dimension: 3 })).status).toBe(400);
  expect((await admin('/declared', 'PATCH', { maxTopK: 3 })).status).toBe(404);
  expect((await admin('/declared', 'DELETE')).status).toBe(404);
  expect((await admin('/none', 'DELETE')).status).toBe(404);
});

test('indexes outlive the gateway, and where nobody may make any there are none', async () => {
  const { token } = (await admin('/two')).result as Described;
  const third = await start();
  expect((await vectorCaller(`${third.url}/vector/indexes/two`)('/info', undefined, { token })).status).toBe(
    200,
  );
  await third.stop();
  const without = await startGateway({
    vector: { database: { schema: SCHEMA }, indexes: [{ name: 'declared', dimension: 2 }] },
  });
  const call = vectorCaller(`${without.url}/vector/indexes`);
  expect((await call('', undefined, { method: 'GET', token: ADMIN })).status).toBe(401);
  expect((await call('/two/info', undefined, { token })).status).toBe(401);
  await without.stop();
});
