/** Far beyond the run, which takes the message back. */
const later = { 'upstash-delay': '3d' };
const destination = 'https://example.com/{ns}';

/** @type {import('../run-checks.mjs').Suite} */
export const queue = {
  credentials: 'bearer',
  needs: [],
  before: [],
  checks: [
    {
      name: 'publish, look at it, take it back',
      rule: 'Endpoints (queue)',
      steps: [
        {
          path: `/v2/publish/${destination}`,
          body: 'payload',
          headers: { ...later, 'content-type': 'text/plain', 'upstash-retries': '2' },
          status: [200, 201],
          expected: { messageId: { $matches: '^msg_' } },
          keep: { message: 'messageId' },
        },
        {
          method: 'GET',
          path: '/v2/messages/{message}',
          expected: { messageId: '{message}', url: destination, body: 'payload', maxRetries: 2 },
          withinMs: 15_000,
        },
        { method: 'DELETE', path: '/v2/messages/{message}', status: [200, 202] },
      ],
    },
    {
      name: 'what is published has to have a destination',
      rule: 'Publish request',
      steps: [
        {
          path: '/v2/publish/no-url-and-no-group-{ns}',
          body: 'x',
          headers: later,
          status: 404,
          expected: { error: { $is: 'string' } },
        },
        {
          path: `/v2/publish/${destination}`,
          body: 'x',
          headers: { ...later, 'upstash-callback': 'no url' },
          status: 400,
          expected: { error: { $is: 'string' } },
        },
      ],
    },
    {
      name: 'a group of URLs: made, read, deleted',
      rule: 'SDK: urlGroups',
      steps: [
        { path: '/v2/topics/{ns}/endpoints', body: { endpoints: [{ url: destination, name: 'one' }] } },
        {
          method: 'GET',
          path: '/v2/topics/{ns}',
          expected: { name: '{ns}', endpoints: [{ url: destination, name: 'one' }] },
        },
        { method: 'DELETE', path: '/v2/topics/{ns}' },
        { method: 'GET', path: '/v2/topics/{ns}', status: 404 },
      ],
    },
    {
      name: 'a queue: made, read, deleted',
      rule: 'SDK: queue',
      steps: [
        { path: '/v2/queues', body: { queueName: '{ns}', parallelism: 2 } },
        { method: 'GET', path: '/v2/queues/{ns}', expected: { name: '{ns}', parallelism: 2, lag: 0 } },
        { method: 'DELETE', path: '/v2/queues/{ns}' },
        { method: 'GET', path: '/v2/queues/{ns}', status: 404 },
      ],
    },
    {
      name: 'a schedule: made, read, deleted',
      rule: 'SDK: schedules',
      steps: [
        {
          path: `/v2/schedules/${destination}`,
          body: 'x',
          headers: { 'upstash-cron': '0 0 1 1 *', 'upstash-schedule-id': '{ns}' },
          status: [200, 201],
          expected: { scheduleId: '{ns}' },
        },
        {
          method: 'GET',
          path: '/v2/schedules/{ns}',
          expected: { scheduleId: '{ns}', cron: '0 0 1 1 *', destination },
        },
        { method: 'DELETE', path: '/v2/schedules/{ns}', status: [200, 202] },
        { method: 'GET', path: '/v2/schedules/{ns}', status: 404 },
      ],
    },
    {
      name: 'the signing keys, the log and the dead letters can be read',
      rule: 'SDK',
      steps: [
        {
          method: 'GET',
          path: '/v2/keys',
          expected: { current: { $matches: '^sig_' }, next: { $matches: '^sig_' } },
        },
        { method: 'GET', path: '/v2/events?count=1', expected: { events: { $is: 'array' } } },
        { method: 'GET', path: '/v2/dlq?count=1', expected: { messages: { $is: 'array' } } },
      ],
    },
    {
      name: 'the quota',
      rule: 'Quota response',
      steps: [
        {
          method: 'GET',
          path: '/v1/quota/',
          expected: Object.fromEntries(
            ['maxTopics', 'maxEndpointsPerTopic', 'maxMessageSize', 'maxRetries', 'maxSchedules']
              .concat(['maxRequestsPerDay', 'retention', 'timeout', 'maxDelay'])
              .map((name) => [name, { $is: 'integer' }]),
          ),
        },
      ],
    },
    {
      name: 'without a valid token nothing is done: 401',
      rule: 'Authentication (queue)',
      steps: ['none', 'wrong'].map((credentials) => ({
        path: `/v2/publish/${destination}`,
        body: 'x',
        headers: later,
        credentials: /** @type {'none' | 'wrong'} */ (credentials),
        status: 401,
        expected: { error: { $is: 'string' } },
      })),
    },
  ],
  after: [
    { method: 'DELETE', path: '/v2/messages/{message}' },
    { method: 'DELETE', path: '/v2/topics/{ns}' },
    { method: 'DELETE', path: '/v2/queues/{ns}' },
    { method: 'DELETE', path: '/v2/schedules/{ns}' },
  ],
};
