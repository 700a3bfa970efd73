import { randomBytes } from 'node:crypto';
import type { RunningGateway } from '../../support/gateway.js';
import { startKvGateway } from '../../support/kv/kv-redis.js';
import { RawClient } from '../../support/raw-client.js';
import { TOKENS } from '../../support/tokens.js';

const PREFIX = `kv-test:${randomBytes(4).toString('hex')}:`;
const key = (name: string) => `${PREFIX}${name}`;

let gateway: RunningGateway;

interface Answer {
  status: number;
  body: unknown;
  text: string;
  headers: Headers;
}

async function send(path: string, init: RequestInit = {}, token: string = TOKENS.kv): Promise<Answer> {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(init.headers as Record<string, string> | undefined),
  };
  const response = await fetch(`${gateway.url}/kv${path}`, { ...init, headers });
  const text = await response.text();
  return {
    status: response.status,
    body: text === '' ? undefined : JSON.parse(text),
    text,
    headers: response.headers,
  };
}

const post = (body: unknown, headers: Record<string, string> = {}, path = '') =>
  send(path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers });
const pipeline = (rows: unknown) => post(rows, {}, '/pipeline');
const transaction = (rows: unknown) => post(rows, {}, '/multi-exec');

beforeAll(async () => {
  gateway = await startKvGateway();
});

afterAll(async () => {
  // one of the keys is no text: names go back byte by byte
  const { body } = await post(['KEYS', `${PREFIX}*`], { 'Service-Encoding': 'base64' });
  for (const name of (body as { result: string[] }).result) {
    const escaped = Buffer.from(name, 'base64').toString('hex').replace(/../g, '%$&');
    expect((await send(`/del/${escaped}`)).text).toBe('{"result":1}');
  }
  await gateway.stop();
});

describe('forms of a request', () => {
  test('a JSON array', async () => {
    expect(await post(['SET', key('a'), 'b'])).toMatchObject({ status: 200, text: '{"result":"OK"}' });
    expect((await post(['get', key('a')])).text).toBe('{"result":"b"}');
    expect((await post(['get', key('none')])).text).toBe('{"result":null}');
  });

  test('a path, with GET, HEAD, POST and PUT', async () => {
    expect((await send(`/set/${key('p')}/1/EX/100`)).text).toBe('{"result":"OK"}');
    for (const method of ['GET', 'POST', 'PUT'])
      expect((await send(`/get/${key('p')}`, { method })).text).toBe('{"result":"1"}');
    const head = await send(`/get/${key('p')}`, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, text: '' });
    expect(head.headers.get('content-length')).toBe('14');
  });

  test('a path with a body of any bytes, and query parameters after it', async () => {
    const value = Buffer.from([0, 1, 13, 10, 255, 128]);
    const set = await send(`/set/${key('bin')}?EX=100`, { method: 'POST', body: value });
    expect(set.text).toBe('{"result":"OK"}');
    const got = await post(['GET', key('bin')], { 'Service-Encoding': 'base64' });
    expect(got.text).toBe(`{"result":"${value.toString('base64')}"}`);
    expect((await send(`/ttl/${key('bin')}`)).text).toMatch(/\{"result":(9\d|100)\}/);
  });

  test('percent-encoded bytes, slashes and empty segments in a path', async () => {
    await send(`/set/${encodeURIComponent(key('x'))}%FF%2F/v%2Fw`);
    expect((await send(`/get/${key('x')}%ff%2f`)).text).toBe('{"result":"v/w"}');
    const keys = await post(['KEYS', key('x*')], { 'upstash-encoding': 'base64' });
    const raw = Buffer.concat([Buffer.from(key('x')), Buffer.from([255, 47])]).toString('base64');
    expect(keys.text).toBe(`{"result":["${raw}"]}`);
    await send(`/set/${key('empty')}/`);
    expect((await send(`/get/${key('empty')}`)).text).toBe('{"result":""}');
    expect(await send('/get/%zz')).toMatchObject({ status: 400 });
  });

  test('a base URL that ends in a slash', async () => {
    expect((await post(['SET', key('slash'), '1'], {}, '/')).status).toBe(200);
    expect((await post([['GET', key('slash')]], {}, '//pipeline')).text).toBe('[{"result":"1"}]');
    expect((await post([['GET', key('slash')]], {}, '//multi-exec')).text).toBe('[{"result":"1"}]');
  });

  test('other methods are 405 with a JSON body', async () => {
    for (const method of ['DELETE', 'PATCH']) expect((await send('/get/a', { method })).status).toBe(405);
    expect((await send('/pipeline')).status).toBe(405);
    expect((await send('/multi-exec')).body).toEqual({ error: expect.stringMatching(/^ERR /) });
  });

  test.each(['', '[]', '{}', '"GET"', 'null', '["GET"', '["GET",null]', '["GET",{"a":1}]', '[[["GET"]]]'])(
    'the body %j is 400 with one error',
    async (body) => {
      for (const path of ['', '/pipeline', '/multi-exec']) {
        const answer = await post(body, {}, path);
        expect(answer).toMatchObject({ status: 400, body: { error: expect.stringMatching(/^ERR /) } });
      }
    },
  );
});

describe('exact replies', () => {
  test('integers of 64 bits, both ways', async () => {
    expect((await post(`["SET","${key('n')}",9007199254740993]`)).text).toBe('{"result":"OK"}');
    expect((await post(['GET', key('n')])).text).toBe('{"result":"9007199254740993"}');
    expect((await post(['INCR', key('n')])).text).toBe('{"result":9007199254740994}');
    await post(`["SET","${key('f')}",1.0]`);
    expect((await post(['GET', key('f')])).text).toBe('{"result":"1.0"}');
  });

  test('maps are flat arrays, whatever the case of the name', async () => {
    await post(['HSET', key('h'), '2', 'b', '1', 'a']);
    for (const name of ['hgetall', 'HGETALL', 'HgetAll'])
      expect((await post([name, key('h')])).text).toBe('{"result":["2","b","1","a"]}');
  });

  test('invalid UTF-8 becomes U+FFFD; base64 keeps the bytes', async () => {
    await post(['SET', key('inv'), 'aaaa']);
    await post(['BITOP', 'NOT', key('inv'), key('inv')]);
    expect((await post(['GET', key('inv')])).text).toBe(`{"result":"${'\ufffd'.repeat(4)}"}`);
    expect((await post(['GET', key('inv')], { 'Upstash-Encoding': 'BASE64' })).text).toBe(
      '{"result":"np6eng=="}',
    );
  });

  test("Redis' own error texts", async () => {
    await post(['SET', key('s'), 'x']);
    expect(await post(['LPUSH', key('s'), '1'])).toMatchObject({
      status: 400,
      text: '{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}',
    });
    expect(await post(['GET'])).toMatchObject({
      status: 400,
      text: '{"error":"ERR wrong number of arguments for \'get\' command"}',
    });
    expect((await post(['evalsha', '0'.repeat(40), '0'])).text).toContain('NOSCRIPT');
  });

  test('the sync token differs on every 2xx reply and is absent from errors', async () => {
    const replies = await Promise.all([
      ...Array.from({ length: 20 }, () => post(['INCR', key('sync')])),
      pipeline([['GET', key('sync')]]),
      transaction([['GET', key('sync')]]),
    ]);
    const tokens = replies.map(({ headers }) => headers.get('upstash-sync-token'));
    expect(new Set(tokens).size).toBe(22);
    expect(tokens).not.toContain(null);
    expect((await post(['GET'])).headers.get('upstash-sync-token')).toBeNull();
  });

  test('a large value and a large pipeline', async () => {
    const value = 'ä'.repeat(2_000_000);
    await post(['SET', key('large'), value]);
    expect((await post(['GET', key('large')])).body).toEqual({ result: value });
    const { body } = await pipeline(Array.from({ length: 100_000 }, (_, i) => ['ECHO', `row ${i}`]));
    expect((body as { result: string }[])[99_999]).toEqual({ result: 'row 99999' });
    expect(body).toHaveLength(100_000);
  });
});

describe('pipelines and transactions', () => {
  test('a pipeline has a result or an error for each row', async () => {
    const { status, body } = await pipeline([
      ['SET', key('r'), 1],
      ['LPUSH', key('r'), 'x'],
      [],
      ['BLPOP', key('r'), 0],
      ['INCR', key('r')],
    ]);
    expect(status).toBe(200);
    expect(body).toEqual([
      { result: 'OK' },
      { error: expect.stringMatching(/^WRONGTYPE/) },
      { error: 'ERR empty command' },
      { error: expect.stringMatching(/^ERR Command 'BLPOP'/) },
      { result: 2 },
    ]);
    expect((await pipeline([['BLPOP', 'x', 0]])).body).toEqual([{ error: expect.any(String) }]);
  });

  test('base64 in every row', async () => {
    const { text } = await post(
      [
        ['SET', key('b'), 'v'],
        ['GET', key('b')],
      ],
      { 'Upstash-Encoding': 'base64' },
      '/pipeline',
    );
    expect(text).toBe('[{"result":"OK"},{"result":"dg=="}]');
  });

  test('a transaction fails in place at run time and as a whole before', async () => {
    await post(['SET', key('t'), '1']);
    const ran = await transaction([
      ['INCR', key('t')],
      ['LPUSH', key('t'), 'x'],
      ['GET', key('t')],
    ]);
    expect(ran.body).toEqual([
      { result: 2 },
      { error: expect.stringMatching(/^WRONGTYPE/) },
      { result: '2' },
    ]);
    for (const broken of [['GET'], ['NOPE'], ['WATCH', 'x'], ['BLPOP', 'x', 0], []]) {
      const discarded = await transaction([['INCR', key('t')], broken]);
      expect(discarded).toMatchObject({ status: 400, body: { error: expect.stringMatching(/^ERR /) } });
    }
    expect((await post(['GET', key('t')])).text).toBe('{"result":"2"}');
  });

  test('concurrent transactions and single commands do not mix', async () => {
    const work = Array.from({ length: 300 }, async (_, i) => {
      const name = key(`mix:${i % 7}`);
      if (i % 3 === 0) {
        const { body } = await transaction([
          ['SET', name, i],
          ['GET', name],
          ['STRLEN', name],
        ]);
        expect(body).toEqual([{ result: 'OK' }, { result: String(i) }, { result: String(i).length }]);
      } else {
        expect((await post(['ECHO', `echo ${i}`])).text).toBe(`{"result":"echo ${i}"}`);
      }
    });
    await Promise.all(work);
  });
});

describe('commands that are refused', () => {
  test.each([
    'SUBSCRIBE x',
    'Subscribe x',
    'PSUBSCRIBE x',
    'MONITOR',
    'SELECT 3',
    'MULTI',
    'EXEC',
    'WATCH x',
    'CLIENT REPLY OFF',
    'CLIENT KILL TYPE normal',
    'QUIT',
    'HELLO 3',
    'RESET',
    'BLPOP x 0',
    'WAIT 1 0',
    'SHUTDOWN NOSAVE',
    'DEBUG SLEEP 1',
    'SCRIPT DEBUG YES',
    'CONFIG SET dir /tmp',
    'REPLICAOF 127.0.0.1 1',
  ])('%s, and the connection goes on', async (line) => {
    const { status, body } = await post(line.split(' '));
    expect({ status, body }).toEqual({
      status: 400,
      body: { error: expect.stringMatching(/^ERR Command '/) },
    });
    expect((await send(`/${line.replaceAll(' ', '/')}`)).status).toBe(400);
    expect((await post(['ECHO', line])).body).toEqual({ result: line });
  });

  test('odd names do no harm', async () => {
    for (const name of ['GET\r\nSET', 'CLIENT REPLY', '\0', 'é', ' ', 'x'.repeat(1_000_000), '*1'])
      expect((await post([name, 'a'])).status).toBe(400);
    expect((await post(['PING'])).text).toBe('{"result":"PONG"}');
  });
});

describe('tokens', () => {
  test('missing and wrong ones are 401 in the shape of the contract', async () => {
    for (const token of ['wrong', ''])
      expect(await send('/get/a', {}, token)).toMatchObject({
        status: 401,
        text: '{"error":"WRONGPASS invalid or missing auth token"}',
      });
  });

  test('the token as a query parameter wins and is no argument', async () => {
    await post(['SET', key('q'), 'v']);
    expect((await send(`/get/${key('q')}?_token=${TOKENS.kv}`, {}, 'wrong')).text).toBe('{"result":"v"}');
    expect((await send(`/get/${key('q')}?_token=wrong`)).status).toBe(401);
  });

  test('the read-only token reads, and nothing else', async () => {
    await post(['SET', key('ro'), 'v']);
    const read = (command: unknown[]) =>
      send('', { method: 'POST', body: JSON.stringify(command) }, TOKENS.kvReadOnly);
    expect((await read(['GET', key('ro')])).text).toBe('{"result":"v"}');
    expect((await read(['PING'])).text).toBe('{"result":"PONG"}');
    expect((await read(['OBJECT', 'ENCODING', key('ro')])).status).toBe(200);
    for (const command of [
      ['SET', key('ro'), 'w'],
      ['DEL', key('ro')],
      ['EVAL', 'return 1', '0'],
      ['SCAN', '0'],
      ['KEYS', '*'],
      ['FLUSHALL'],
      ['GETDEL', key('ro')],
      ['CONFIG', 'GET', 'port'],
      ['ACL', 'LIST'],
      ['nope'],
    ])
      expect((await read(command)).body).toEqual({ error: expect.stringMatching(/^NOPERM /) });
    const rows = JSON.stringify([
      ['GET', key('ro')],
      ['DEL', key('ro')],
    ]);
    const batch = await send('/pipeline', { method: 'POST', body: rows }, TOKENS.kvReadOnly);
    expect(batch.body).toEqual([{ result: 'v' }, { error: expect.stringMatching(/^NOPERM/) }]);
    expect((await send('/multi-exec', { method: 'POST', body: rows }, TOKENS.kvReadOnly)).status).toBe(400);
    expect((await post(['GET', key('ro')])).text).toBe('{"result":"v"}');
  });
});

test('requests that a client pipelines on one socket are answered in order', async () => {
  const client = await RawClient.open(Number(new URL(gateway.url).port));
  const request = (word: string) =>
    `GET /kv/echo/${word} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKENS.kv}\r\n\r\n`;
  client.write(request('one') + request('two') + request('three'));
  const text = await client.until(/one.*two.*\{"result":"[^"]*"\}$/s);
  expect(text.match(/"result":"[^"]*"/g)).toHaveLength(3);
  client.end();
});
