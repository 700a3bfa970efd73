import { randomBytes } from 'node:crypto';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { type KvCaller, kvCaller } from '../../support/kv/kv.js';
import { watchLoop } from '../../support/loop-watch.js';
import { TOKENS } from '../../support/tokens.js';

const PREFIX = `kv-requests:${randomBytes(4).toString('hex')}:`;
const key = (name: string) => `${PREFIX}${name}`;

let gateway: RunningGateway;
let kv: KvCaller;

async function start(settings: Record<string, unknown>, environment?: Record<string, string>) {
  const started = await startGateway({ kv: { databases: [settings] } }, environment);
  const caller = kvCaller(`${started.url}/kv`);
  return { started, caller };
}

const up = (caller: KvCaller) => eventually(async () => expect((await caller.run('PING')).status).toBe(200));

beforeAll(async () => {
  const { started, caller } = await start({});
  gateway = started;
  kv = caller;
  await up(kv);
});

afterAll(async () => {
  const { result } = (await kv.run('KEYS', `${PREFIX}*`)).body as { result: string[] };
  if (result.length > 0) await kv.run('DEL', ...result);
  await gateway.stop();
});

describe('XREAD BLOCK', () => {
  const clients = async () => {
    const { result } = (await kv.run('INFO', 'clients')).body as { result: string };
    return Number(/blocked_clients:(\d+)/.exec(result)?.[1]);
  };

  test('answers when something comes, and holds up nobody', async () => {
    const waiting = kv.run('XREAD', 'BLOCK', 20_000, 'STREAMS', key('s'), '$');
    const inPipeline = kv.pipeline(['ECHO', 'a'], ['xread', 'block', '0', 'streams', key('s'), '$']);
    await eventually(async () => expect(await clients()).toBe(2));
    expect((await kv.run('GET', key('none'))).ms).toBeLessThan(PROMPT_MS);
    await kv.run('XADD', key('s'), '1-1', 'f', 'v');
    const entry = [[key('s'), [['1-1', ['f', 'v']]]]];
    expect((await waiting).body).toEqual({ result: entry });
    expect((await inPipeline).body).toEqual([{ result: 'a' }, { result: entry }]);
  });

  test('answers null after its time, by path too', async () => {
    const { text, ms } = await kv.send(`/xread/block/300/streams/${key('t')}/$`);
    expect(text).toBe('{"result":null}');
    expect(ms).toBeGreaterThanOrEqual(295);
  });

  test('XREADGROUP waits too; a wait without end has one', async () => {
    const { started, caller } = await start({ longestBlockMs: 400, timeoutMs: 20_000 });
    try {
      await up(caller);
      await caller.run('XGROUP', 'CREATE', key('g'), 'group', '$', 'MKSTREAM');
      const words = ['XREADGROUP', 'GROUP', 'group', 'me', 'BLOCK', '0', 'STREAMS', key('g'), '>'];
      const { text, ms } = await caller.run(...words);
      expect(text).toBe('{"result":null}');
      expect(ms).toBeGreaterThanOrEqual(395);
      // Redis takes the last BLOCK of several
      expect((await caller.run('XREAD', 'BLOCK', 1, 'BLOCK', 0, 'STREAMS', key('t'), '$')).text).toBe(
        '{"result":null}',
      );
    } finally {
      await started.stop();
    }
  });

  test('ends when the client goes away', async () => {
    const controller = new AbortController();
    const body = JSON.stringify(['XREAD', 'BLOCK', 30_000, 'STREAMS', key('s'), '$']);
    const gone = kv.send('', { method: 'POST', body, signal: controller.signal });
    await eventually(async () => expect(await clients()).toBe(1));
    controller.abort();
    await expect(gone).rejects.toThrow();
    await eventually(async () => expect(await clients()).toBe(0));
  });

  test('is bounded in number, refused in a transaction, and a wrong time is an error at once', async () => {
    const { started, caller } = await start({ exclusiveConnections: 1 });
    try {
      await up(caller);
      const waiting = caller.run('XREAD', 'BLOCK', 5_000, 'STREAMS', key('t'), '$');
      await eventually(async () => expect(await clients()).toBe(1));
      const refused = await caller.run('XREAD', 'BLOCK', 5_000, 'STREAMS', key('t'), '$');
      expect(refused.status).toBe(503);
      expect(refused.headers.get('retry-after')).toBe('1');
      expect((await waiting).text).toBe('{"result":null}');
    } finally {
      await started.stop();
    }
    expect((await kv.transaction(['XREAD', 'BLOCK', 10, 'STREAMS', key('t'), '$'])).body).toEqual({
      error: expect.stringMatching(/^ERR .*transaction/),
    });
    for (const time of ['-1', 'x', '99999999999999999999']) {
      const answer = await kv.run('XREAD', 'BLOCK', time, 'STREAMS', key('t'), '$');
      expect(answer).toMatchObject({ status: 400, body: { error: expect.stringMatching(/^ERR timeout/) } });
    }
  });
});

describe('scripts', () => {
  test('one that does not end holds up nobody beyond Redis itself, and SCRIPT KILL passes', async () => {
    const endless = kv.run('EVAL', 'while true do end', 0);
    // Redis says that it is busy after 5 s
    await eventually(async () => {
      const { status, body, headers } = await kv.run('GET', key('none'));
      expect({ status, body }).toEqual({ status: 503, body: { error: expect.stringMatching(/^BUSY /) } });
      expect(headers.get('retry-after')).toBe('1');
    });
    expect((await kv.run('SCRIPT', 'KILL')).text).toBe('{"result":"OK"}');
    // Redis ends the script at its next look at the clock
    await eventually(async () => expect((await kv.run('GET', key('none'))).text).toBe('{"result":null}'));
    expect((await endless).body).toEqual({ error: expect.stringMatching(/killed by user/) });
  });

  test.each([
    ['by itself', ['EVAL', 'while true do end', 0]],
    ['in a transaction', undefined],
  ])('one whose request is late is ended where that is configured: %s', async (_how, command) => {
    const { started, caller } = await start({ killScripts: true, timeoutMs: 6_000 });
    try {
      const late =
        command === undefined
          ? await caller.transaction(['GET', key('x')], ['EVAL', 'while true do end', 0])
          : await caller.run(...command);
      expect(late.status).toBe(504);
      await eventually(async () =>
        expect((await caller.run('GET', key('none'))).text).toBe('{"result":null}'),
      );
    } finally {
      await started.stop();
    }
  });

  test('a gateway that begins while Redis is busy can kill the script', async () => {
    const endless = kv.run('EVAL', 'while true do end', 0);
    await eventually(async () => expect((await kv.run('GET', 'a')).status).toBe(503));
    const { started, caller } = await start({});
    try {
      await eventually(async () => expect((await caller.run('SCRIPT', 'KILL')).text).toBe('{"result":"OK"}'));
      expect((await endless).status).toBe(400);
    } finally {
      await started.stop();
    }
  });
});

test('a huge reply does not hold up short ones', async () => {
  const chunk = 'x'.repeat(1_000_000);
  await kv.run('DEL', key('list'));
  for (let i = 0; i < 5; i++) await kv.run('RPUSH', key('list'), ...new Array(10).fill(chunk));
  const huge = kv.run('LRANGE', key('list'), 0, -1);
  const short: number[] = [];
  let done = false;
  void huge.then(() => {
    done = true;
  });
  while (!done) short.push((await kv.run('GET', key('none'))).ms);
  expect(((await huge).body as { result: string[] }).result.length).toBe(50);
  expect(short.length).toBeGreaterThan(3);
  await kv.run('DEL', key('list'));
});

test('a reply of very many small elements does not hold the loop', async () => {
  // of a socket that has more, up to 2 MiB are read a turn: half a million elements, which took 130 ms of CPU time
  const script = 'local t = {} for i = 1, 3000000 do t[i] = 1 end return t';
  const watch = watchLoop();
  try {
    const tooLong = { status: 400, body: { error: expect.stringMatching(/bytes/) } };
    // 504 where Redis has too little of a busy machine
    await eventually(async () => expect(await kv.run('EVAL', script, 0)).toMatchObject(tooLong));
    expect(watch.longestMs()).toBeLessThan(100);
  } finally {
    watch.end();
  }
});

describe('RESP2 replies', () => {
  const format = { 'Upstash-Response-Format': 'resp2' };

  test('are the bytes that Redis sent', async () => {
    const value = Buffer.from([0xff, 0x00, 0x0d, 0x0a]);
    const set = await kv.send(`/set/${key('r')}`, { method: 'POST', body: value, headers: format });
    expect(set.text).toBe('+OK\r\n');
    expect(set.headers.get('content-type')).toBe('application/octet-stream');
    expect(set.headers.get('upstash-sync-token')).not.toBeNull();
    const response = await fetch(`${gateway.url}/kv/get/${key('r')}`, {
      headers: { authorization: `Bearer ${TOKENS.kv}`, 'Service-Response-Format': 'RESP2' },
    });
    const expected = Buffer.concat([Buffer.from('$4\r\n'), value, Buffer.from('\r\n')]);
    expect(Buffer.from(await response.arrayBuffer())).toEqual(expected);
    expect((await kv.send(`/strlen/${key('r')}`, { headers: format })).text).toBe(':4\r\n');
    expect(await kv.send(`/incr/${key('r')}`, { headers: format })).toMatchObject({
      status: 400,
      text: '-ERR value is not an integer or out of range\r\n',
    });
  });

  test('in a pipeline one after the other; a transaction answers JSON', async () => {
    const body = JSON.stringify([
      ['SET', key('r'), '1'],
      ['GET', key('none')],
      ['NOPE'],
      ['LRANGE', 'no', 0, 1],
    ]);
    const { text } = await kv.send('/pipeline', { method: 'POST', body, headers: format });
    expect(text).toMatch(/^\+OK\r\n\$-1\r\n-ERR unknown command .*\r\n\*0\r\n$/);
    const transaction = JSON.stringify([['GET', key('r')]]);
    const answer = await kv.send('/multi-exec', { method: 'POST', body: transaction, headers: format });
    expect(answer.body).toEqual([{ result: '1' }]);
  });

  test('other formats, and base64 of it, are refused', async () => {
    const other = await kv.send('/ping', { headers: { 'Upstash-Response-Format': 'resp3' } });
    expect(other).toMatchObject({ status: 400, body: { error: expect.stringMatching(/^ERR .*resp2/) } });
    const both = await kv.send('/ping', { headers: { ...format, 'Upstash-Encoding': 'base64' } });
    expect(both.status).toBe(400);
    expect((await kv.send('/ping', { headers: { 'Upstash-Response-Format': 'json' } })).status).toBe(200);
  });
});

test('what the configuration refuses', async () => {
  const { started, caller } = await start({ deniedCommands: ['flushall', 'KEYS'], queryToken: false });
  try {
    await up(caller);
    for (const command of [['FLUSHALL'], ['keys', '*']])
      expect((await caller.run(...command)).body).toEqual({ error: expect.stringMatching(/configuration/) });
    const response = await fetch(`${started.url}/kv/ping?_token=${TOKENS.kv}`);
    expect(response.status).toBe(401);
  } finally {
    await started.stop();
  }
});

test('tokens that are not configured are derived from the password', async () => {
  const none = { PORTICO_KV_TOKEN: '', PORTICO_KV_READONLY_TOKEN: '' };
  const { started } = await start({ name: 'derived' }, none);
  try {
    expect((await kvCaller(`${started.url}/kv`).run('PING')).status).toBe(401);
  } finally {
    await started.stop();
  }
});

test('metrics count commands by name and result', async () => {
  const { started, caller } = await start({});
  try {
    await up(caller);
    await caller.pipeline(
      ['SET', key('m'), 'x'],
      ['INCR', key('m')],
      ['SUBSCRIBE', 'x'],
      ['nope-1'],
      ['nope-2'],
    );
    const metrics = await (await fetch(`${started.url}/metrics`)).text();
    const count = (command: string, result: string) =>
      new RegExp(`portico_kv_commands_total\\{[^}]*command="${command}",result="${result}"\\} (\\d+)`).exec(
        metrics,
      )?.[1];
    expect(count('set', 'ok')).toBe('1');
    expect(count('incr', 'error')).toBe('1');
    expect(count('subscribe', 'refused')).toBe('1');
    expect(count('other', 'error')).toBe('2');
    expect(metrics).toMatch(/portico_kv_backend_round_trip_seconds_count\{database="default"\} [1-9]/);
    expect(metrics).toMatch(/portico_kv_pending_requests\{database="default"\} 0/);
  } finally {
    await started.stop();
  }
});

describe('what would fill the memory', () => {
  test('a reply is not kept beyond the limit while it arrives', async () => {
    const { started, caller } = await start({ replyLimit: 1_000_000 });
    try {
      await up(caller);
      await caller.run('SADD', key('one'), 'member');
      const { body } = await caller.run('SRANDMEMBER', key('one'), -1_000_000);
      expect(body).toEqual({ error: expect.stringMatching(/^ERR the command ran, but/) });
      const rows = await caller.transaction(
        ['SET', key('tx'), 'ran'],
        ['SRANDMEMBER', key('one'), -1_000_000],
      );
      expect(rows).toMatchObject({
        status: 200,
        body: [{ error: expect.anything() }, { error: expect.anything() }],
      });
      expect((await caller.run('GET', key('tx'))).text).toBe('{"result":"ran"}');
    } finally {
      await started.stop();
    }
  });

  test.each(['[]', '["PING"]', '[1]'])('millions of rows %s are refused by their number', async (row) => {
    const body = `[${new Array(2_000_000).fill(row).join(',')}]`;
    const { status, text } = await kv.send('/pipeline', { method: 'POST', body });
    expect(status).toBe(400);
    expect(text).toMatch(/max pipeline length exceeded/);
  });

  test('further commands of emulated rows are bounded together', async () => {
    const rows = new Array(40).fill(['SCAN', '0', 'COUNT', '10000', 'WITHTYPE']);
    const many = Array.from({ length: 1_000 }, (_, i) => [key(`many:${i}`), 'v']).flat();
    await kv.run('MSET', ...many);
    const { status, body } = await kv.pipeline(...rows);
    expect(status).toBe(200);
    expect(
      (body as { error?: string }[]).filter(({ error }) => error?.includes('WITHTYPE')).length,
    ).toBeGreaterThan(10);
    await kv.run('DEL', ...many.filter((_, i) => i % 2 === 0));
  });

  test('large values of every kind come back whole', async () => {
    for (const value of [
      'x'.repeat(100_000),
      `é"\\${'y'.repeat(50_000)}\n`,
      'z'.repeat(20_000) + String.fromCharCode(1),
    ]) {
      await kv.run('SET', key('large'), value);
      expect((await kv.run('GET', key('large'))).body).toEqual({ result: value });
      const base64 = await kv.send(`/get/${key('large')}`, { headers: { 'Upstash-Encoding': 'base64' } });
      expect((base64.body as { result: string }).result).toBe(Buffer.from(value).toString('base64'));
    }
    await kv.send(`/set/${key('large')}`, { method: 'POST', body: Buffer.alloc(50_000, 0xff) });
    expect((await kv.run('GET', key('large'))).body).toEqual({ result: '\ufffd'.repeat(50_000) });
  });
});

test.each(['requirepas[\\]s]', 'requir[\\e]pass', '[r]equirepass', 'requirepas\\s', 'require*', '*'])(
  'CONFIG GET %s does not tell the password',
  async (pattern) => {
    expect((await kv.run('CONFIG', 'GET', pattern)).body).toEqual({
      error: expect.stringMatching(/passwords/),
    });
  },
);
