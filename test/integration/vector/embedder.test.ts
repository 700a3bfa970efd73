import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller } from '../../support/vector.js';

const SCHEMA = 'test_vector_embedder';
const API_KEY = 'embedder-key-0123456789';

interface Asked {
  authorization: string | undefined;
  body: { model: string; input: string[]; encoding_format: string };
}

/** An endpoint that turns a text into the counts of the letters a, b and c, plus 1, and lists the vectors backwards. */
const asked: Asked[] = [];
let answer: (asked: Asked) => { status: number; body: string } | undefined;
let endpoint: Server;
let gateway: RunningGateway;

const vectorOf = (text: string) => ['a', 'b', 'c'].map((letter) => text.split(letter).length);
const usual = ({ body }: Asked) => ({
  status: 200,
  body: JSON.stringify({
    object: 'list',
    model: body.model,
    data: body.input
      .map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(text) }))
      .reverse(),
  }),
});

beforeAll(async () => {
  await dropSchema(SCHEMA);
  answer = usual;
  endpoint = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    request.on('end', () => {
      const one = { authorization: request.headers.authorization, body: JSON.parse(text) as Asked['body'] };
      asked.push(one);
      const reply = answer(one);
      if (reply === undefined) return;
      response.writeHead(reply.status, { 'content-type': 'application/json' });
      response.end(reply.body);
    });
  }).listen(0, '127.0.0.1');
  await once(endpoint, 'listening');
  const { port } = endpoint.address() as AddressInfo;
  const embedding = {
    url: `http://127.0.0.1:${port}/v1/embeddings`,
    model: 'letters',
    apiKey: API_KEY,
    batchSize: 4,
    timeoutMs: 500,
  };
  const common = { dimension: 3, token: TOKENS.vector };
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [
        { ...common, name: 'dense', path: '/dense', embedding },
        {
          ...common,
          name: 'hybrid',
          path: '/hybrid',
          type: 'HYBRID',
          embedding: { ...embedding, sparse: true },
        },
        { ...common, name: 'sparse', path: '/sparse', type: 'SPARSE', embedding: { sparse: true } },
        { ...common, name: 'half', path: '/half', type: 'HYBRID', embedding },
        { ...common, name: 'none', path: '/none' },
        { ...common, name: 'other', path: '/other', dimension: 4, embedding },
        { ...common, name: 'away', path: '/away', embedding: { url: 'http://127.0.0.1:1/v1/embeddings' } },
      ],
    },
  });
});

afterAll(async () => {
  await gateway.stop();
  endpoint.closeAllConnections();
  endpoint.close();
  await dropSchema(SCHEMA);
});

afterEach(() => {
  answer = usual;
});

const at = (name: string) => vectorCaller(`${gateway.url}/${name}`);
const idsOf = (result: unknown) => (result as { id: string }[]).map(({ id }) => id);
const all = { includeVectors: true, includeData: true, includeMetadata: true };

test('texts are stored with the vectors of the endpoint, and found by texts', async () => {
  const index = at('dense');
  asked.length = 0;
  const texts = Array.from({ length: 6 }, (_, i) => ({
    id: `t${i}`,
    data: `${'a'.repeat(i)}b`,
    metadata: { i },
  }));
  expect((await index('/upsert-data', texts)).result).toBe('Success');
  expect(asked.map(({ body }) => body.input.length)).toEqual([4, 2]);
  expect(asked[0]).toEqual({
    authorization: `Bearer ${API_KEY}`,
    body: { model: 'letters', input: texts.slice(0, 4).map(({ data }) => data), encoding_format: 'float' },
  });
  expect((await index('/fetch', { ids: ['t3'], ...all })).result).toEqual([
    { id: 't3', vector: [4, 2, 1], metadata: { i: 3 }, data: 'aaab' },
  ]);
  const { result } = await index('/query-data', {
    data: 'baaa',
    topK: 1,
    includeData: true,
    filter: 'i > 1',
  });
  expect(result).toEqual([{ id: 't3', score: 1, data: 'aaab' }]);
  const many = await index('/query-data', [
    { data: 'b', topK: 1 },
    { data: 'ba', topK: 1 },
  ]);
  expect((many.result as unknown[]).map(idsOf)).toEqual([['t0'], ['t1']]);
  expect((await index('/info')).result).toMatchObject({ denseIndex: { embeddingModel: 'letters' } });
});

test('new data in an update makes new vectors; beside a vector it is only stored', async () => {
  const index = at('dense');
  await index('/upsert-data/update', { id: 'u', data: 'abc' });
  expect((await index('/update/update', { id: 'u', data: 'ccc' })).result).toEqual({ updated: 1 });
  const get = async () => (await index('/fetch/update', { ids: ['u'], ...all })).result;
  expect(await get()).toEqual([{ id: 'u', vector: [1, 1, 4], data: 'ccc' }]);
  await index('/update/update', { id: 'u', data: 'aaa', vector: [1, 2, 3] });
  expect(await get()).toEqual([{ id: 'u', vector: [1, 2, 3], data: 'aaa' }]);
  await at('none')('/upsert', { id: 'u', vector: [1, 2, 3] });
  expect((await at('none')('/update', { id: 'u', data: 'text' })).result).toEqual({ updated: 1 });
});

test('a hybrid index gets both parts, and queryMode says which are asked', async () => {
  const index = at('hybrid');
  await index('/upsert-data', [
    { id: 'x', data: 'alpha words' },
    { id: 'y', data: 'beta alpha' },
    { id: 'z', data: 'cc' },
  ]);
  const ask = async (queryMode?: string) =>
    (await index('/query-data', { data: 'words', queryMode, topK: 5 })).result;
  expect(idsOf(await ask('SPARSE'))).toEqual(['x']);
  expect(idsOf(await ask('DENSE'))).toHaveLength(3);
  const both = await ask();
  expect(idsOf(both)).toHaveLength(3);
  expect((both as { score: number }[])[0]?.score).toBeLessThan(0.1);
  const { uuid, scores } = (
    await index('/resumable-query-data', { data: 'words', queryMode: 'SPARSE', topK: 1 })
  ).result as { uuid: string; scores: unknown };
  expect(idsOf(scores)).toEqual(['x']);
  expect((await index('/resumable-query-next', { uuid, additionalK: 2 })).result).toEqual([]);
});

test('a sparse index counts words: rare ones first with IDF', async () => {
  const index = at('sparse');
  await index('/upsert-data', [
    { id: 'a', data: 'The cat and the dog' },
    { id: 'b', data: 'the THE the' },
    { id: 'c', data: 'Katzen & Hünde' },
  ]);
  const ask = async (body: object) => idsOf((await index('/query-data', body)).result);
  expect(await ask({ data: 'cat' })).toEqual(['a']);
  expect(await ask({ data: 'the' })).toEqual(['b', 'a']);
  expect(await ask({ data: 'hünde?' })).toEqual(['c']);
  expect(await ask({ data: 'dog the', weightingStrategy: 'IDF' })).toEqual(['a', 'b']);
  expect(await ask({ data: '...' })).toEqual([]);
  expect((await index('/info')).result).toMatchObject({ sparseIndex: { embeddingModel: 'words' } });
});

test('without an embedder, or without one of two, texts are refused', async () => {
  for (const name of ['none', 'half']) {
    for (const [path, body] of [
      ['/upsert-data', { id: 'x', data: 'y' }],
      ['/query-data', { data: 'y' }],
      ['/resumable-query-data', { data: 'y' }],
    ] as const) {
      const { status, error } = await at(name)(path, body);
      expect([name, path, status, error]).toEqual([
        name,
        path,
        422,
        'Embedding data for this index is not allowed. The index must be created with an embedding model to use it.',
      ]);
    }
  }
  expect((await at('half')('/query-data', { data: 'y', queryMode: 'DENSE' })).status).toBe(200);
});

test.each<[string, object, RegExp]>([
  ['no data', { id: 'x' }, /body\.0\.data: expected text/],
  ['a vector', { id: 'x', data: 'y', vector: [1, 2, 3] }, /vector/],
  ['no id', { data: 'y' }, /body\.0\.id/],
  ['data with U+0000', { id: 'x', data: '\0' }, /U\+0000/],
])('upsert-data refuses %s', async (_name, body, message) => {
  const reply = await at('dense')('/upsert-data', body);
  expect([reply.status, reply.error]).toEqual([400, expect.stringMatching(message)]);
});

test.each<[string, typeof answer, number, RegExp]>([
  ['is overloaded', () => ({ status: 429, body: '{}' }), 503, /cannot answer now \(429\)/],
  ['fails', () => ({ status: 500, body: 'secret trace' }), 503, /cannot answer now \(500\)/],
  ['refuses', () => ({ status: 401, body: API_KEY }), 502, /refused the texts \(401\)/],
  ['sends no JSON', () => ({ status: 200, body: '<html>' }), 502, /no list of embeddings/],
  ['sends too few', () => ({ status: 200, body: '{"data":[]}' }), 502, /0 embeddings for 1 texts/],
  [
    'numbers its embeddings wrongly',
    () => ({ status: 200, body: '{"data":[{"index":1,"embedding":[1,2,3]}]}' }),
    502,
    /did not number its embeddings from 0 to 0/,
  ],
  [
    'sends null for a component',
    () => ({ status: 200, body: '{"data":[{"index":0,"embedding":[1,null,3]}]}' }),
    502,
    /The embedder sent what this index cannot hold: embedding\.1: expected a number, got null/,
  ],
  [
    'sends a vector without length',
    () => ({ status: 200, body: '{"data":[{"index":0,"embedding":[0,0,0]}]}' }),
    502,
    /The embedder sent what this index cannot hold: embedding: a vector of length 0/,
  ],
  ['is silent', () => undefined, 504, /did not answer in time/],
])('an endpoint that %s is told as such, and nothing is stored', async (_name, reply, status, message) => {
  answer = reply;
  const refused = await at('dense')('/upsert-data/failed', { id: 'x', data: 'abc' });
  expect([refused.status, refused.error]).toEqual([status, expect.stringMatching(message)]);
  expect(refused.text).not.toMatch(/secret|embedder-key/);
  expect((await at('dense')('/fetch/failed', ['x'])).result).toEqual([null]);
});

test('embeddings that all carry the same number are refused: which text each belongs to is unknown', async () => {
  answer = ({ body }) => ({
    status: 200,
    body: JSON.stringify({ data: body.input.map((text) => ({ index: 0, embedding: vectorOf(text) })) }),
  });
  const refused = await at('dense')('/upsert-data/same', [
    { id: 'x', data: 'a' },
    { id: 'y', data: 'b' },
  ]);
  expect([refused.status, refused.error]).toEqual([
    502,
    'The embedder did not number its embeddings from 0 to 1.',
  ]);
});

test('vectors of another dimension and an endpoint that is away are told as such', async () => {
  const other = await at('other')('/upsert-data', { id: 'x', data: 'abc' });
  expect([other.status, other.error]).toEqual([
    502,
    "The embedder's vectors have 3 dimensions, those of the index 4.",
  ]);
  const away = await at('away')('/query-data', { data: 'abc' });
  expect([away.status, away.error]).toEqual([503, 'The embedder is not available.']);
});
