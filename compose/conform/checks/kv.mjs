const command = (...words) => ({ path: '/', body: words });
const result = (value) => ({ expected: { result: value, $without: ['error'] } });
const failure = (pattern) => ({
  status: 400,
  expected: { error: { $matches: pattern }, $without: ['result'] },
});

/** @type {import('../run-checks.mjs').Suite} */
export const kv = {
  credentials: 'bearer',
  needs: [],
  before: [],
  checks: [
    {
      name: 'a command in the body, and its result',
      rule: 'Endpoints 4',
      steps: [
        { ...command('SET', '{ns}:a', 'one'), ...result('OK') },
        { ...command('get', '{ns}:a'), ...result('one') },
        { ...command('GET', '{ns}:none'), ...result(null) },
        { ...command('STRLEN', '{ns}:a'), ...result(3) },
      ],
    },
    {
      name: 'numbers among the arguments',
      rule: 'Endpoints 4',
      steps: [
        { ...command('SET', '{ns}:n', 41), ...result('OK') },
        { ...command('INCRBY', '{ns}:n', 1), ...result(42) },
      ],
    },
    {
      name: 'a command in the path, by every method',
      rule: 'Endpoints 1',
      steps: [
        { method: 'GET', path: '/set/{ns}:b/two', ...result('OK') },
        { method: 'POST', path: '/append/{ns}:b/!', ...result(4) },
        { method: 'PUT', path: '/GET/{ns}:b', ...result('two!') },
        { method: 'HEAD', path: '/get/{ns}:b' },
      ],
    },
    {
      name: 'a body is the last argument, and query parameters follow it',
      rule: 'Endpoints 2, 3',
      steps: [
        { path: '/set/{ns}:c?EX=100', body: '{"json": true}', ...result('OK') },
        { method: 'GET', path: '/get/{ns}:c', ...result('{"json": true}') },
        { ...command('TTL', '{ns}:c'), expected: { result: { $is: 'integer' } } },
      ],
    },
    {
      name: 'lists in lists, with null and integers',
      rule: 'Reply object',
      steps: [
        { ...command('RPUSH', '{ns}:l', 'x', 'y'), ...result(2) },
        { ...command('LRANGE', '{ns}:l', 0, -1), ...result(['x', 'y']) },
        { ...command('MGET', '{ns}:a', '{ns}:none'), ...result(['one', null]) },
        { ...command('HSET', '{ns}:h', 'f', 'v'), ...result(1) },
        { ...command('HGETALL', '{ns}:h'), ...result(['f', 'v']) },
        { ...command('ZADD', '{ns}:z', 1.5, 'm'), ...result(1) },
        { ...command('ZRANGE', '{ns}:z', 0, -1, 'WITHSCORES'), expected: { result: { $length: 2 } } },
      ],
    },
    {
      name: 'a pipeline: a result or an error for each row',
      rule: 'Endpoints 5, rule 2',
      steps: [
        {
          path: '/pipeline',
          body: [
            ['SET', '{ns}:p', 'text'],
            ['INCR', '{ns}:p'],
            ['GET', '{ns}:p'],
          ],
          expected: [
            { result: 'OK' },
            { error: { $matches: '^ERR ' }, $without: ['result'] },
            { result: 'text' },
          ],
        },
      ],
    },
    {
      name: 'a transaction: what fails in it stops nothing',
      rule: 'Endpoints 6, rule 4',
      steps: [
        {
          path: '/multi-exec',
          body: [
            ['SET', '{ns}:t', 'text'],
            ['INCR', '{ns}:t'],
            ['APPEND', '{ns}:t', '!'],
          ],
          expected: [{ result: 'OK' }, { error: { $matches: '^ERR ' } }, { result: 5 }],
        },
      ],
    },
    {
      name: 'a transaction with a row that is no command is discarded',
      rule: 'rule 3',
      steps: [
        {
          path: '/multi-exec',
          body: [
            ['SET', '{ns}:discarded', '1'],
            ['NOSUCHCOMMAND', 'x'],
          ],
          ...failure('.'),
        },
        { ...command('EXISTS', '{ns}:discarded'), ...result(0) },
      ],
    },
    {
      name: 'base64 where it is asked for, except OK',
      rule: 'rule 5',
      steps: [
        { ...command('SET', '{ns}:e', 'hello'), headers: { 'upstash-encoding': 'base64' }, ...result('OK') },
        { ...command('GET', '{ns}:e'), headers: { 'upstash-encoding': 'base64' }, ...result('aGVsbG8=') },
      ],
    },
    {
      name: 'bytes that are no UTF-8 become U+FFFD',
      rule: 'rule 5',
      steps: [
        { ...command('SET', '{ns}:o', 'aa'), ...result('OK') },
        { ...command('BITOP', 'NOT', '{ns}:o', '{ns}:o'), ...result(2) },
        { ...command('GET', '{ns}:o'), expected: { result: { $matches: '\uFFFD' } } },
      ],
    },
    {
      name: 'a script',
      rule: 'rule 7',
      steps: [
        {
          ...command('EVAL', "return redis.call('GET', KEYS[1])", 1, '{ns}:a'),
          ...result('one'),
        },
      ],
    },
    {
      name: 'a stream',
      rule: 'rule 7',
      steps: [
        { ...command('XADD', '{ns}:s', '1-1', 'f', 'v'), ...result('1-1') },
        { ...command('XRANGE', '{ns}:s', '-', '+'), ...result([['1-1', ['f', 'v']]]) },
      ],
    },
    {
      name: 'what is refused: unknown, blocking, cluster, WATCH',
      rule: 'Errors, rule 7',
      steps: [
        { ...command('NOSUCHCOMMAND'), ...failure('^ERR ') },
        { ...command('BLPOP', '{ns}:l', 1), ...failure('^ERR ') },
        { ...command('BZPOPMIN', '{ns}:z', 1), ...failure('^ERR ') },
        { ...command('WATCH', '{ns}:a'), ...failure('^ERR ') },
        { ...command('CLUSTER', 'INFO'), ...failure('^ERR ') },
      ],
    },
    {
      name: 'errors of the command: 400, class word first',
      rule: 'Errors',
      steps: [
        { ...command('GET'), ...failure('^ERR wrong number of arguments') },
        { ...command('INCR', '{ns}:a'), ...failure('^ERR value is not an integer or out of range') },
        { ...command('LPUSH', '{ns}:a', 'x'), ...failure('^WRONGTYPE ') },
        { path: '/', body: 'not json', ...failure('^ERR ') },
      ],
    },
    {
      name: 'other methods are 405',
      rule: 'rule 1',
      steps: [
        { method: 'DELETE', path: '/get/{ns}:a', status: 405 },
        { method: 'PATCH', path: '/get/{ns}:a', status: 405 },
      ],
    },
    {
      name: 'without a valid token nothing is done: 401',
      rule: 'Authentication',
      steps: [
        {
          ...command('SET', '{ns}:a', 'changed'),
          credentials: 'none',
          status: 401,
          expected: { error: { $is: 'string' } },
        },
        {
          ...command('SET', '{ns}:a', 'changed'),
          credentials: 'wrong',
          status: 401,
          expected: { error: { $is: 'string' } },
        },
        { ...command('GET', '{ns}:a'), ...result('one') },
      ],
    },
  ],
  after: [command('DEL', ...'a b c e h l n o p s t z discarded'.split(' ').map((name) => `{ns}:${name}`))],
};
