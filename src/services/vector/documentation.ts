import type { ServiceDocumentation } from '../../http/route.js';

const record = { id: 'book-1', vector: [0.1, 0.2, 0.3], metadata: { genre: 'noir', year: 1994 } };
const text = { id: 'book-1', data: 'A detective in the rain', metadata: { genre: 'noir' } };
const entry = { id: 'book-1', score: 0.98, metadata: { genre: 'noir', year: 1994 } };
const success = { result: 'Success' };
const uuid = '4f6f2f5e-8e3c-4a44-9d7a-0d2b6e6f8c11';
const counts = { vectorCount: 1, pendingVectorCount: 0 };

const film = {
  name: 'films',
  path: '/vector/indexes/films',
  source: 'administrator',
  type: 'DENSE',
  storage: 'vector',
  dimension: 384,
  similarity: 'COSINE',
  vectorCount: 0,
  status: 'up',
};
const wholeFilm = {
  ...film,
  hnsw: { enabled: true, m: 16, efConstruction: 64, quantisation: 'none', buildMemory: null },
  countWords: false,
  maxTopK: 1_000,
  maxPage: 1_000,
  maxMetadataBytes: 65_536,
  maxDataBytes: 1_048_576,
  maxResumableQueries: 1_000,
  token: 'vx_2_0c4f_f_a-token',
  readOnlyToken: 'vx_2_0c4f_r_a-token',
};

export const documentation: ServiceDocumentation = {
  about:
    'An index of vectors in Postgres with pgvector: dense, sparse or hybrid, in namespaces, with metadata and filters.',
  names: { namespace: 'books', index: 'films' },
  examples: {
    'vector.upsert': { body: [record], reply: success },
    'vector.upsertData': { body: [text], reply: success },
    'vector.update': {
      body: { id: 'book-1', metadata: { year: 1995 }, metadataUpdateMode: 'PATCH' },
      reply: { result: { updated: 1 } },
    },
    'vector.delete': { body: { ids: ['book-1', 'book-2'] }, reply: { result: { deleted: 2 } } },
    'vector.reset': { reply: success },
    'vector.query': {
      body: {
        vector: [0.1, 0.2, 0.3],
        topK: 5,
        includeMetadata: true,
        filter: "genre = 'noir' AND year >= 1990",
      },
      reply: { result: [entry] },
    },
    'vector.queryData': {
      body: { data: 'rainy nights', topK: 5, includeMetadata: true },
      reply: { result: [entry] },
    },
    'vector.resumableQuery': {
      body: { vector: [0.1, 0.2, 0.3], topK: 100, includeMetadata: true, maxIdle: 600 },
      reply: { result: { uuid, scores: [entry] } },
    },
    'vector.resumableQueryData': {
      body: { data: 'rainy nights', topK: 100, includeMetadata: true },
      reply: { result: { uuid, scores: [entry] } },
    },
    'vector.resumableQueryNext': { body: { uuid, additionalK: 100 }, reply: { result: [entry] } },
    'vector.resumableQueryEnd': { body: { uuid }, reply: success },
    'vector.fetch': {
      body: { ids: ['book-1', 'book-2'], includeMetadata: true, includeVectors: true },
      reply: { result: [record, null] },
    },
    'vector.range': {
      body: { cursor: '0', limit: 100, includeMetadata: true },
      reply: { result: { nextCursor: '', vectors: [{ id: 'book-1', metadata: record.metadata }] } },
    },
    'vector.random': { reply: { result: { id: 'book-1' } } },
    'vector.count': { body: { filter: "genre = 'noir'" }, reply: { result: { count: 12 } } },
    'vector.facets': {
      body: { field: 'genre', limit: 10 },
      reply: { result: [{ value: 'noir', count: 12 }] },
    },
    'vector.info': {
      reply: {
        result: {
          ...counts,
          indexSize: 65_536,
          dimension: 3,
          similarityFunction: 'COSINE',
          indexType: 'DENSE',
          namespaces: { '': counts },
        },
      },
    },
    'vector.listNamespaces': { reply: { result: ['', 'books'] } },
    'vector.deleteNamespace': { reply: success },
    'vector.renameNamespace': {
      body: { namespace: 'books', newNamespace: 'library' },
      reply: { result: { renamed: true } },
    },
    'vector.deferGraph': { body: { defer: true }, reply: success },
    'vector.listIndexes': { reply: { result: [film] } },
    'vector.createIndex': { body: { name: 'films', dimension: 384 }, reply: { result: wholeFilm } },
    'vector.describeIndex': { reply: { result: wholeFilm } },
    'vector.alterIndex': { body: { maxTopK: 100 }, reply: { result: { ...wholeFilm, maxTopK: 100 } } },
    'vector.dropIndex': { reply: success },
  },
};
