import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller } from '../../support/vector.js';

const SCHEMA = 'test_vector_refusals';

let gateway: RunningGateway;
let index: ReturnType<typeof vectorCaller>;

beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [{ dimension: 3, token: TOKENS.vector, bodyLimit: 200_000, maxDataBytes: 1_000 }],
    },
  });
  index = vectorCaller(`${gateway.url}/vector`);
});

afterAll(async () => {
  await gateway.stop();
  await dropSchema(SCHEMA);
});

const good = { id: 'good', vector: [1, 2, 3] };
const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

const dimension = (given: number) => [422, `Invalid vector dimension: ${given}, expected: 3`] as const;

test.each<[string, unknown, number, RegExp | string]>([
  ['too few dimensions', { ...good, vector: [1, 2] }, ...dimension(2)],
  ['one vector too long by one', [good, { ...good, vector: [1, 2, 3, 4] }], ...dimension(4)],
  [
    'a wrong dimension in a record that a later one replaces',
    [{ id: 'good', vector: [1] }, good],
    ...dimension(1),
  ],
  [
    'null as a component',
    { ...good, vector: [1, null, 3] },
    400,
    /body\.0\.vector\.1: expected a number, got null/,
  ],
  ['text as a component', { ...good, vector: [1, '2', 3] }, 400, /body\.0\.vector\.1: expected a number/],
  ['a nested component', { ...good, vector: [1, [2], 3] }, 400, /body\.0\.vector\.1: expected a number/],
  ['NaN, which is no JSON', '{"id":"x","vector":[1,NaN,3]}', 400, /not valid JSON/],
  [
    'an infinite component',
    '{"id":"x","vector":[1,1e999,3]}',
    422,
    /body\.0\.vector\.1: expected a number of at most 3/,
  ],
  ['a component beyond float32', { ...good, vector: [1, 1e39, 3] }, 422, /expected a number of at most 3/],
  ['a vector without length', { ...good, vector: [0, 0, 0] }, 422, /length 0/],
  ['no vector', { id: 'x' }, 422, /body\.0\.vector: every record of this index needs a vector/],
  ['null as the vector', { id: 'x', vector: null }, 422, /needs a vector/],
  [
    'text as the vector',
    { id: 'x', vector: '[1,2,3]' },
    400,
    /body\.0\.vector: expected an array of numbers/,
  ],
  ['a sparse vector', { ...good, sparseVector: { indices: [1], values: [1] } }, 422, /this index is dense/],
  ['no id', { vector: [1, 2, 3] }, 400, /body\.0\.id: expected a string or a number/],
  ['metadata as a list', { ...good, metadata: [1] }, 400, /body\.0\.metadata: expected an object/],
  ['a very long id', { ...good, id: 'é'.repeat(513) }, 400, /body\.0\.id: expected at most 1024 bytes/],
  [
    'an id beyond the whole numbers that JSON keeps',
    '{"id":9007199254740993,"vector":[1,2,3]}',
    400,
    /send a longer id as a string/,
  ],
  ['an id with U+0000', { ...good, id: 'a\0' }, 400, /body\.0\.id: expected text without U\+0000/],
  ['an id with half of a surrogate pair', '{"id":"\\ud800","vector":[1,2,3]}', 400, /lone surrogates/],
  ['data with U+0000', { ...good, data: '\0' }, 400, /body\.0\.data: expected text without U\+0000/],
  ['data beyond its limit', { ...good, data: 'x'.repeat(1_001) }, 422, /body\.0\.data: 1001 bytes/],
  ['metadata that is no object', { ...good, metadata: [1] }, 400, /body\.0\.metadata: expected an object/],
  [
    'metadata beyond its limit',
    { ...good, metadata: { a: 'x'.repeat(65_536) } },
    422,
    /body\.0\.metadata: 65544 bytes/,
  ],
  ['metadata with U+0000', { ...good, metadata: { 'a\0': 1 } }, 422, /U\+0000/],
  [
    'metadata with half of a surrogate pair',
    '{"id":"x","vector":[1,2,3],"metadata":{"a":"\\udc00"}}',
    422,
    /surrogate/,
  ],
  ['deep metadata', `{"id":"x","vector":[1,2,3],"metadata":${deep(65)}}`, 422, /nested deeper than 64/],
  [
    'very deep metadata',
    `{"id":"x","vector":[1,2,3],"metadata":${deep(20_000)}}`,
    422,
    /nested deeper than 64/,
  ],
  ['an unknown key', { ...good, metdata: {} }, 400, /metdata/],
  ['a namespace in the body', { ...good, namespace: 'x' }, 400, /namespace/],
  ['a number instead of a record', 5, 400, /body\.0/],
  ['an array in the array', [[good]], 400, /body\.0/],
  ['nothing', undefined, 400, /body/],
  ['null', 'null', 400, /body/],
  ['broken JSON', '{"id":', 400, /not valid JSON/],
  ['a body beyond the limit', { ...good, data: 'x'.repeat(200_000) }, 413, /200000 bytes/],
])('upsert refuses %s and stores nothing', async (_name, body, status, message) => {
  const before = (await index('/info')).text;
  const batch = typeof body === 'object' && body !== null && !Array.isArray(body) ? [good, body] : body;
  const single = await index('/upsert', body);
  expect([single.status, JSON.parse(single.text)]).toEqual([status, { error: single.error, status }]);
  if (typeof message === 'string') expect(single.error).toBe(message);
  else expect(single.error).toMatch(message);
  expect((await index('/upsert', batch)).status).toBe(status);
  expect((await index('/info')).text).toBe(before);
});

const vector = [1, 2, 3];

test.each<[string, unknown, number, RegExp | string]>([
  ['another dimension', { vector: [1, 2] }, ...dimension(2)],
  ['no vector', { topK: 1 }, 422, /body\.0: a query of this index needs vector/],
  ['null as a component', { vector: [1, 2, null] }, 400, /body\.0\.vector\.2: expected a number, got null/],
  ['a vector without length', { vector: [0, 0, 0] }, 422, /length 0/],
  ['topK 0', { vector, topK: 0 }, 400, /body\.0\.topK/],
  ['a negative topK', { vector, topK: -1 }, 400, /body\.0\.topK/],
  ['a fractional topK', { vector, topK: 1.5 }, 400, /body\.0\.topK/],
  ['a huge topK', { vector, topK: 1e12 }, 422, /body\.0\.topK: 1000000000000, more than the limit of 1000/],
  ['topK as text', { vector, topK: '3' }, 400, /body\.0\.topK/],
  ['a flag as text', { vector, includeMetadata: 'yes' }, 400, /body\.0\.includeMetadata/],
  ['an unknown key', { vector, topk: 3 }, 400, /topk/],
  ['an array', [1, 2, 3], 400, /body/],
  ['nothing', undefined, 400, /body/],
])('query refuses %s', async (_name, body, status, message) => {
  const { status: refused, error, text } = await index('/query', body);
  expect([refused, JSON.parse(text)]).toEqual([status, { error, status }]);
  if (typeof message === 'string') expect(error).toBe(message);
  else expect(error).toMatch(message);
});

test('what is nearly refused is stored: longest id, deepest metadata, smallest and largest components', async () => {
  const records = [
    { id: 'é'.repeat(512), vector: [1e-18, 0, 0] },
    { id: "'; drop table x; --", vector: [1e19, 1, 1], metadata: JSON.parse(deep(64)) as unknown },
    { id: '\u{1f600}', vector: [1.4e-45, 1, 0], data: 'x'.repeat(1_000) },
  ];
  expect((await index('/upsert/edge', records)).status).toBe(200);
  const { result } = await index('/query/edge', {
    vector: [1, 0, 0],
    includeMetadata: true,
    includeData: true,
  });
  const found = result as { id: string; score: number }[];
  expect(found.map(({ id }) => id).sort()).toEqual(records.map(({ id }) => id).sort());
  for (const { score } of found) expect(score).toBeGreaterThanOrEqual(0.5);
});

test('namespaces: too long, with U+0000 and badly escaped ones are refused, odd ones work', async () => {
  expect((await index(`/upsert/${'n'.repeat(1_025)}`, good)).status).toBe(400);
  expect((await index('/upsert/a%00b', good)).status).toBe(400);
  expect((await index('/upsert/%zz', good)).status).toBe(400);
  for (const name of ['constructor', '__proto__', '%22%3Bdrop%20schema%20x', '..%2F..', 'ü%2Fa/b']) {
    expect((await index(`/upsert/${name}`, good)).status).toBe(200);
    expect((await index(`/query/${name}`, { vector })).result).toEqual([{ id: 'good', score: 1 }]);
  }
});

test.each<[string, unknown]>([
  ['/reset', { namespace: 'x' }],
  ['/reset', ['x']],
  ['/reset', 'null1'],
  ['/reset', '"x"'],
  ['/reset?namespace=x', []],
  ['/reset/x', { all: true }],
])('a reset that names something beside its path changes nothing: %s %j', async (path, body) => {
  await index('/upsert', { id: 'kept', vector: [1, 2, 3] });
  await index('/upsert/x', { id: 'kept', vector: [1, 2, 3] });
  expect((await index(path, body)).status).toBe(400);
  for (const namespace of ['', '/x'])
    expect((await index(`/fetch${namespace}`, { ids: ['kept'] })).result).toEqual([{ id: 'kept' }]);
});

test("an empty batch is a success that stores nothing; unknown paths are 404 in the contract's shape", async () => {
  const before = (await index('/info')).text;
  expect((await index('/upsert/never', [])).result).toBe('Success');
  expect((await index('/info')).text).toBe(before);
  const unknown = await index('/nothing', {});
  expect([unknown.status, JSON.parse(unknown.text)]).toEqual([404, { error: unknown.error, status: 404 }]);
});

test('HEAD is answered like GET where that reads, and changes nothing', async () => {
  await index('/upsert', { id: 'kept', vector: [1, 2, 3] });
  const head = async (path: string) => {
    const headers = { authorization: `Bearer ${TOKENS.vector}` };
    const { status, headers: sent } = await fetch(`${gateway.url}/vector${path}`, {
      method: 'HEAD',
      headers,
      signal: AbortSignal.timeout(10_000),
    });
    return [status, sent.get('allow')];
  };
  expect(await head('/info')).toEqual([200, null]);
  for (const path of ['/reset', '/reset?all', '/upsert', '/delete', '/delete-namespace/x'])
    expect(await head(path)).toEqual([405, 'GET, POST, PUT, DELETE']);
  expect((await index('/fetch', { ids: ['kept'] })).result).toEqual([{ id: 'kept' }]);
});
