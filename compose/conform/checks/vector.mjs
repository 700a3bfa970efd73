const seen = { withinMs: 15_000 };
const ids = (...names) => ({ ids: names });

/** @type {import('../run-checks.mjs').Suite} */
export const vector = {
  credentials: 'bearer',
  needs: [],
  before: [
    {
      method: 'GET',
      path: '/info',
      expected: { result: { dimension: { $is: 'integer' }, similarityFunction: { $is: 'string' } } },
      keep: { dimension: 'result.dimension' },
    },
  ],
  checks: [
    {
      name: 'upsert one and several',
      rule: 'Endpoints',
      steps: [
        {
          path: '/upsert/{ns}',
          body: { id: 'a', vector: { $vector: [1, 0.1] }, metadata: { n: 1, text: 'first' } },
          expected: { result: 'Success' },
        },
        {
          path: '/upsert/{ns}',
          body: [
            { id: 'b', vector: { $vector: [0.1, 1] }, metadata: { n: 2 } },
            { id: 'c', vector: { $vector: [0.5, 0.5] } },
          ],
          expected: { result: 'Success' },
        },
      ],
    },
    {
      name: 'fetch in the order that was asked for, null for what is not there',
      rule: 'Endpoints, rule 5',
      steps: [
        {
          path: '/fetch/{ns}',
          body: { ...ids('b', 'none', 'a'), includeMetadata: true },
          expected: {
            result: [
              { id: 'b', metadata: { n: 2 }, $without: ['vector'] },
              null,
              { id: 'a', metadata: { n: 1, text: 'first' } },
            ],
          },
          ...seen,
        },
        {
          path: '/fetch/{ns}',
          body: { ...ids('a'), includeVectors: true },
          expected: { result: [{ id: 'a', vector: { $is: 'array' }, $without: ['metadata'] }] },
        },
      ],
    },
    {
      name: 'query: the nearest first, at most topK, without what was not asked for',
      rule: 'Endpoints, rule 5',
      steps: [
        {
          path: '/query/{ns}',
          body: { vector: { $vector: [1, 0.1] }, topK: 2 },
          expected: {
            result: [
              { id: 'a', score: { $is: 'number' }, $without: ['vector', 'metadata'] },
              { id: 'c', score: { $is: 'number' } },
            ],
          },
          ...seen,
        },
        {
          path: '/query/{ns}',
          body: { vector: { $vector: [0.1, 1] }, topK: 1, includeVectors: true, includeMetadata: true },
          expected: { result: [{ id: 'b', metadata: { n: 2 }, vector: { $is: 'array' } }] },
        },
      ],
    },
    {
      name: 'range in pages, to the end',
      rule: 'rule 1',
      steps: [
        {
          path: '/range/{ns}',
          body: { cursor: '0', limit: 2 },
          expected: { result: { nextCursor: { $matches: '.' }, vectors: { $length: 2 } } },
          keep: { cursor: 'result.nextCursor' },
        },
        {
          path: '/range/{ns}',
          body: { cursor: '{cursor}', limit: 2 },
          expected: { result: { nextCursor: '', vectors: { $length: 1 } } },
        },
      ],
    },
    {
      name: 'upsert replaces',
      rule: 'Endpoints',
      steps: [
        {
          path: '/upsert/{ns}',
          body: { id: 'a', vector: { $vector: [1, 0.1] }, metadata: { n: 10 } },
          expected: { result: 'Success' },
        },
        {
          path: '/fetch/{ns}',
          body: { ...ids('a'), includeMetadata: true },
          expected: { result: [{ id: 'a', metadata: { n: 10, $without: ['text'] } }] },
          ...seen,
        },
      ],
    },
    {
      name: 'another dimension is 422, and nothing is stored',
      rule: 'rule 4, Errors 1, 2',
      steps: [
        {
          path: '/upsert/{ns}',
          body: { id: 'wrong', vector: [] },
          status: 422,
          expected: { error: { $is: 'string' }, status: 422 },
        },
        {
          path: '/query/{ns}',
          body: { vector: [], topK: 1 },
          status: 422,
          expected: { error: { $is: 'string' }, status: 422 },
        },
        { path: '/fetch/{ns}', body: ids('wrong'), expected: { result: [null] } },
      ],
    },
    {
      name: 'delete by a list and by an object, and how many there were',
      rule: 'Endpoints',
      steps: [
        { method: 'DELETE', path: '/delete/{ns}', body: ['a', 'none'], expected: { result: { deleted: 1 } } },
        { method: 'DELETE', path: '/delete/{ns}', body: ids('b'), expected: { result: { deleted: 1 } } },
        {
          path: '/fetch/{ns}',
          body: ids('a', 'b', 'c'),
          expected: { result: [null, null, { id: 'c' }] },
          ...seen,
        },
      ],
    },
    {
      name: 'reset empties',
      rule: 'rule 2',
      steps: [
        { method: 'DELETE', path: '/reset/{ns}', expected: { result: 'Success' } },
        { path: '/fetch/{ns}', body: ids('c'), expected: { result: [null] }, ...seen },
      ],
    },
    {
      name: 'the fields of info',
      rule: 'Index info',
      steps: [
        {
          method: 'GET',
          path: '/info',
          expected: {
            result: {
              vectorCount: { $is: 'integer' },
              pendingVectorCount: { $is: 'integer' },
              indexSize: { $is: 'integer' },
            },
          },
        },
      ],
    },
    {
      name: 'without a valid token nothing is done: 401',
      rule: 'Authentication, Errors 1',
      steps: [
        {
          method: 'GET',
          path: '/info',
          credentials: 'none',
          status: 401,
          expected: { error: { $is: 'string' }, status: 401 },
        },
        {
          method: 'GET',
          path: '/info',
          credentials: 'wrong',
          status: 401,
          expected: { error: { $is: 'string' }, status: 401 },
        },
      ],
    },
  ],
  after: [{ method: 'DELETE', path: '/delete-namespace/{ns}' }],
};
