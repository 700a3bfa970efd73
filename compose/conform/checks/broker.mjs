const metadata = (more = {}) => ({
  topic: '{topic}',
  partition: { $is: 'integer' },
  offset: { $is: 'integer' },
  timestamp: { $is: 'integer' },
  ...more,
});
const failed = (status) => ({ status, expected: { error: { $is: 'string' }, status } });

/** @type {import('../run-checks.mjs').Suite} */
export const broker = {
  credentials: 'basic',
  needs: ['topic'],
  before: [],
  checks: [
    {
      name: 'produce one, several, and from the path',
      rule: 'Endpoints',
      steps: [
        {
          path: '/produce/{topic}',
          body: { value: '{ns}-1', key: 'k', headers: [{ key: 'h', value: 'v' }] },
          expected: [metadata()],
          keep: { partition: '0.partition', offset: '0.offset' },
        },
        {
          path: '/produce',
          body: [
            { topic: '{topic}', partition: '{partition}', value: '{ns}-2' },
            { topic: '{topic}', partition: '{partition}', value: '{ns}-3' },
          ],
          expected: [metadata({ partition: '{partition}' }), metadata({ partition: '{partition}' })],
        },
        { method: 'GET', path: '/produce/{topic}/{ns}-path?key=k', expected: metadata() },
      ],
    },
    {
      name: 'fetch from an offset: what was written, as it was written',
      rule: 'Endpoints, Message',
      steps: [
        {
          path: '/fetch',
          body: { topic: '{topic}', partition: '{partition}', offset: '{offset}', timeout: 5000 },
          expected: {
            $has: [
              {
                ...metadata({ offset: '{offset}' }),
                key: 'k',
                value: '{ns}-1',
                headers: [{ key: 'h', value: 'v' }],
              },
              { ...metadata(), key: '', value: '{ns}-2', headers: [] },
            ],
          },
          withinMs: 15_000,
        },
      ],
    },
    {
      name: 'consume as a group, from the earliest, and commit',
      rule: 'Endpoints, rules 1, 2',
      steps: [
        {
          path: '/consume/{ns}/one',
          body: { topic: '{topic}', timeout: 3000 },
          headers: { 'kafka-enable-auto-commit': 'false', 'kafka-auto-offset-reset': 'earliest' },
          expected: { $has: [{ topic: '{topic}' }] },
          withinMs: 45_000,
        },
        { path: '/commit/{ns}/one', expected: { result: 'Success', status: 200 } },
        {
          method: 'GET',
          path: '/consumers',
          expected: { $has: [{ name: '{ns}', instances: { $has: [{ name: 'one' }] } }] },
        },
        {
          path: '/committed/{ns}/one',
          body: { topic: '{topic}', partition: '{partition}' },
          expected: [{ topic: '{topic}', partition: '{partition}', offset: { $is: 'integer' } }],
        },
        { method: 'DELETE', path: '/delete-consumer/{ns}/one', expected: { result: 'Success', status: 200 } },
      ],
    },
    {
      name: 'offsets: earliest, latest, by time',
      rule: 'Endpoints',
      steps: ['earliest', 'latest', '1'].map((when) => ({
        path: `/offsets/${when}`,
        body: { topic: '{topic}', partition: '{partition}' },
        expected: [{ topic: '{topic}', partition: '{partition}', offset: { $is: 'integer' } }],
      })),
    },
    {
      name: 'topics, each with the number of its partitions',
      rule: 'Endpoints',
      steps: [{ method: 'GET', path: '/topics', expected: { $is: 'object' } }],
    },
    {
      name: 'a webhook: body and headers become a record',
      rule: 'Events 1',
      steps: [
        {
          path: '/webhook?topic={topic}',
          body: '{ns}-hook',
          headers: { 'x-conform': 'yes' },
          expected: [metadata()],
          keep: { hookPartition: '0.partition', hookOffset: '0.offset' },
        },
        {
          path: '/fetch',
          body: { topic: '{topic}', partition: '{hookPartition}', offset: '{hookOffset}', timeout: 5000 },
          expected: {
            $has: [{ value: '{ns}-hook', headers: { $has: [{ key: 'x-conform', value: 'yes' }] } }],
          },
          withinMs: 15_000,
        },
      ],
    },
    {
      name: 'what is not valid is refused, with error and status',
      rule: 'Errors 1',
      steps: [
        { path: '/produce/{topic}', body: { key: 'no value' }, ...failed(400) },
        { path: '/produce/{topic}', body: 'not json', ...failed(400) },
      ],
    },
    {
      name: 'without valid credentials nothing is done: 401',
      rule: 'Authentication 1',
      steps: [
        { path: '/produce/{topic}', body: { value: 'x' }, credentials: 'none', ...failed(401) },
        { path: '/produce/{topic}', body: { value: 'x' }, credentials: 'wrong', ...failed(401) },
      ],
    },
  ],
  after: [{ method: 'DELETE', path: '/delete-consumer/{ns}/one' }],
};
