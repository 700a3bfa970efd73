import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { backendAddress } from '../../support/environment.js';
import { EventStreamClient } from '../../support/event-stream.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { RawClient } from '../../support/raw-client.js';
import { TOKENS } from '../../support/tokens.js';

const PREFIX = `kv-streams:${randomBytes(4).toString('hex')}:`;
const name = (text: string) => `${PREFIX}${text}`;

let gateway: RunningGateway;
let redis: Redis;
const streams: EventStreamClient[] = [];

const open = async (path: string, options: { method?: string; body?: string; token?: string } = {}) => {
  const stream = await EventStreamClient.open(
    `${gateway.url}/kv${path}`,
    options.token ?? TOKENS.kv,
    options,
  );
  streams.push(stream);
  return stream;
};
const listeners = async (channel: string) => Number((await redis.pubsub('NUMSUB', channel))[1]);
const metric = async (line: string) => {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(new RegExp(`^${line.replace(/[{}]/g, '\\$&')} (\\d+)$`, 'm').exec(text)?.[1]);
};
const noneOpen = async () => {
  for (const kind of ['subscribe', 'psubscribe', 'monitor'])
    expect(await metric(`portico_kv_streams_open{database="default",kind="${kind}"}`)).toBe(0);
};

beforeAll(async () => {
  gateway = await startGateway({ kv: {} });
  redis = new Redis(backendAddress('PORTICO_REDIS_URL'));
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});

afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
});

afterAll(async () => {
  await eventually(noneOpen);
  await gateway.stop();
  redis.disconnect();
});

describe('channels', () => {
  test.each(['GET', 'POST'])('%s: confirmed by Redis first, then its messages', async (method) => {
    const channel = name('a');
    const stream = await open(`/subscribe/${channel}`, {
      method,
      ...(method === 'POST' ? { body: '[]' } : {}),
    });
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-cache',
      'upstash-sync-token': expect.stringMatching(/./),
    });
    expect(await redis.publish(channel, 'one, two')).toBe(1);
    expect(await redis.publish(channel, '')).toBe(1);
    expect(await stream.received(3)).toEqual([
      `subscribe,${channel},1`,
      `message,${channel},one, two`,
      `message,${channel},`,
    ]);
  });

  test('several in one path, each once, and names of any bytes', async () => {
    const [a, b] = [name('a'), name('größer/?#,')];
    const stream = await open(`/subscribe/${a}/${encodeURIComponent(b)}/${a}/${PREFIX}%FF`);
    expect(await redis.publish(b, 'x')).toBe(1);
    expect(await redis.publish(Buffer.from(`${PREFIX}\xff`, 'latin1'), Buffer.from([0x78, 0xc3]))).toBe(1);
    expect(await stream.received(5)).toEqual([
      `subscribe,${a},1`,
      `subscribe,${b},2`,
      `subscribe,${PREFIX}\ufffd,3`,
      `message,${b},x`,
      `message,${PREFIX}\ufffd,x\ufffd`,
    ]);
  });

  test('patterns', async () => {
    const stream = await open(`/psubscribe/${name('p*')}`);
    await redis.publish(name('p1'), '{"a":1}');
    expect(await stream.received(2)).toEqual([
      `psubscribe,${name('p*')},1`,
      `pmessage,${name('p*')},${name('p1')},{"a":1}`,
    ]);
  });

  test('line breaks never end an event; JSON over several lines comes in one', async () => {
    const channel = name('lines');
    const stream = await open(`/subscribe/${channel}`);
    await redis.publish(channel, 'one\n\nevent: x\r\ndata: message,other,forged\n message,other,forged');
    await redis.publish(channel, '{\n  "a": [1,\n 2]\r\n}\n');
    await redis.publish(channel, 'end');
    expect(await stream.received(4)).toEqual([
      `subscribe,${channel},1`,
      `message,${channel},one\ndata:\ndata:event: x\ndata:data: message,other,forged\ndata:  message,other,forged`,
      `message,${channel},{   "a": [1,  2]  } `,
      `message,${channel},end`,
    ]);
  });

  test('200 streams share one subscription; it ends with the last of them', async () => {
    const channel = name('fan');
    const many = await Promise.all(Array.from({ length: 200 }, () => open(`/subscribe/${channel}`)));
    expect(await redis.publish(channel, 'hello')).toBe(1);
    for (const stream of many)
      expect(await stream.received(2)).toEqual([`subscribe,${channel},1`, `message,${channel},hello`]);
    expect(await metric('portico_kv_streams_open{database="default",kind="subscribe"}')).toBe(200);
    for (const stream of many.slice(1)) stream.close();
    await eventually(async () =>
      expect(await metric('portico_kv_streams_open{database="default",kind="subscribe"}')).toBe(1),
    );
    expect(await listeners(channel)).toBe(1);
    many[0]?.close();
    await eventually(async () => expect(await listeners(channel)).toBe(0));
    await eventually(noneOpen);
  });

  test('coming and going on one channel at the same time: whoever is there gets every message', async () => {
    const channel = name('churn');
    const kept = await open(`/subscribe/${channel}`);
    for (let round = 1; round <= 20; round++) {
      const others = await Promise.all(Array.from({ length: 10 }, () => open(`/subscribe/${channel}`)));
      expect(await redis.publish(channel, String(round))).toBe(1);
      if (round === 10) kept.close();
      // who comes while the others leave gets the next message
      const next = open(`/subscribe/${channel}`);
      for (const other of others) {
        await other.received(2);
        other.close();
      }
      const late = await next;
      expect(await redis.publish(channel, 'late')).toBe(1);
      // before it may come the message that was on its way when it joined
      await eventually(() => expect(late.events.at(-1)).toBe(`message,${channel},late`));
      late.close();
    }
    await eventually(async () => expect(await listeners(channel)).toBe(0));
  });

  test('a client that leaves before the reply leaves nothing', async () => {
    const channel = name('gone');
    const clients = await Promise.all(
      Array.from({ length: 20 }, () => RawClient.open(Number(new URL(gateway.url).port))),
    );
    for (const [i, client] of clients.entries()) {
      client.write(
        `GET /kv/subscribe/${channel}:${i} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKENS.kv}\r\n\r\n`,
      );
      setImmediate(() => client.end());
    }
    await eventually(noneOpen);
    await eventually(async () => expect(await redis.pubsub('CHANNELS', `${channel}*`)).toEqual([]));
  });

  test('a reader that stands still is cut off; the others get everything', async () => {
    const channel = name('slow');
    const slow = await RawClient.open(Number(new URL(gateway.url).port));
    slow.write(`GET /kv/subscribe/${channel}?_token=${TOKENS.kv} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await slow.until(/data: subscribe,.*\n\n/);
    slow.socket.pause();
    const quick = await open(`/subscribe/${channel}`);
    const payload = 'x'.repeat(100_000);
    const count = 300;
    for (let i = 0; i < count; i++) await redis.publish(channel, `${i}:${payload}`);
    const events = await quick.received(count + 1);
    expect(events.slice(1).map((event) => Number.parseInt(event.split(',')[2] as string, 10))).toEqual(
      Array.from({ length: count }, (_, i) => i),
    );
    await eventually(async () =>
      expect(await metric('portico_kv_streams_open{database="default",kind="subscribe"}')).toBe(1),
    );
    slow.socket.resume();
    await slow.closed();
  });

  test('HEAD gets the head, and no subscription stays', async () => {
    const channel = name('head');
    const head = await open(`/subscribe/${channel}`, { method: 'HEAD' });
    expect([head.status, head.headers['content-type']]).toEqual([200, 'text/event-stream']);
    expect(await head.untilEnd()).toBe('');
    await eventually(async () => expect(await listeners(channel)).toBe(0));
    await eventually(noneOpen);
  });

  test('a base URL that ends in a slash', async () => {
    const stream = await open(`//subscribe/${name('slash')}`, { method: 'POST', body: '[]' });
    expect(await stream.received(1)).toEqual([`subscribe,${name('slash')},1`]);
  });
});

describe('monitor', () => {
  test('every command as Redis words it, without logins', async () => {
    const monitor = await open('/monitor');
    const second = await open('/monitor', { method: 'POST', body: '[]' });
    await redis.set(name('m'), 'a "b"\n', 'EX', 1);
    await redis.call(
      'AUTH',
      'default',
      decodeURIComponent(new URL(backendAddress('PORTICO_REDIS_URL')).password),
    );
    await redis.echo(name('last'));
    for (const stream of [monitor, second]) {
      await eventually(() => expect(stream.text).toContain(name('last')));
      expect(stream.events[0]).toBe('"OK"');
      expect(stream.events.find((line) => line.includes('"set"'))).toMatch(
        /^\d+\.\d{6} \[0 [\d.]+:\d+\] "set" ".*:m" "a \\"b\\"\\n" "EX" "1"$/,
      );
      expect(stream.text).not.toMatch(/"auth"/i);
    }
    monitor.close();
    second.close();
    await eventually(async () => expect(await redis.client('LIST')).not.toContain('cmd=monitor'));
  });

  test('asked for again while it is being given up', async () => {
    for (let round = 0; round < 20; round++) {
      const monitor = await open('/monitor');
      expect((await monitor.received(1))[0]).toBe('"OK"');
      monitor.close();
    }
  });

  test('not with the read-only token', async () => {
    const refused = await open('/monitor', { token: TOKENS.kvReadOnly });
    expect(refused.status).toBe(400);
    expect(await refused.untilEnd()).toBe(
      `{"error":"NOPERM this user has no permissions to run the 'monitor' command"}`,
    );
  });
});

describe('who may', () => {
  test('the read-only token subscribes', async () => {
    const stream = await open(`/subscribe/${name('ro')}`, { token: TOKENS.kvReadOnly });
    expect(await stream.received(1)).toEqual([`subscribe,${name('ro')},1`]);
  });

  test('a wrong token is 401, another method 405, no channel 400; the command itself is refused', async () => {
    const wrong = await open(`/subscribe/${name('x')}`, { token: 'wrong' });
    expect([wrong.status, await wrong.untilEnd()]).toEqual([
      401,
      expect.stringMatching(/^\{"error":"WRONGPASS/),
    ]);
    for (const path of ['/subscribe/x', '/psubscribe/x', '/monitor'])
      for (const method of ['PUT', 'DELETE']) expect((await open(path, { method })).status).toBe(405);
    const none = await open('/subscribe');
    expect(none.status).toBe(400);
    expect(await none.untilEnd()).toBe(`{"error":"ERR wrong number of arguments for 'subscribe' command"}`);
    const many = await open(`/psubscribe/${Array.from({ length: 1_001 }, (_, i) => i).join('/')}`);
    expect([many.status, await many.untilEnd()]).toEqual([
      400,
      '{"error":"ERR more than 1000 names in one stream"}',
    ]);
    const command = await open('/SUBSCRIBE/x');
    expect([command.status, await command.untilEnd()]).toEqual([400, expect.stringMatching(/not available/)]);
  });

  test('no more streams than the limit', async () => {
    const limited = await startGateway({ kv: { databases: [{ streams: 2, deniedCommands: ['monitor'] }] } });
    const url = `${limited.url}/kv`;
    const [one, two] = await Promise.all([
      EventStreamClient.open(`${url}/subscribe/${name('l')}`, TOKENS.kv),
      EventStreamClient.open(`${url}/psubscribe/${name('l')}`, TOKENS.kv),
    ]);
    const third = await EventStreamClient.open(`${url}/subscribe/${name('l')}`, TOKENS.kv);
    expect([third.status, third.headers['retry-after']]).toEqual([503, '1']);
    expect(await third.untilEnd()).toBe('{"error":"ERR Too many streams are open"}');
    one.close();
    await eventually(async () => {
      const again = await EventStreamClient.open(`${url}/subscribe/${name('l')}`, TOKENS.kv);
      again.close();
      expect(again.status).toBe(200);
    });
    expect((await EventStreamClient.open(`${url}/monitor`, TOKENS.kv)).status).toBe(400);
    // a stop waits for no stream
    const startedAt = performance.now();
    await limited.stop();
    expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
    await two.untilEnd();
  });

  test('a stream that is silent gets comments', async () => {
    const quick = await startGateway({ kv: { databases: [{ streamHeartbeatMs: 1_000 }] } });
    const stream = await EventStreamClient.open(`${quick.url}/kv/subscribe/${name('h')}`, TOKENS.kv);
    await eventually(() => expect(stream.text).toBe(`data: subscribe,${name('h')},1\n\n: ping\n\n`));
    stream.close();
    await quick.stop();
  });
});

describe('users of Redis', () => {
  const user = name('user').replaceAll(':', '-');
  const setUser = (...rules: string[]) => redis.call('ACL', 'SETUSER', user, ...rules);
  const tokenOf = async (password: string) => {
    const reply = await fetch(`${gateway.url}/kv`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKENS.kv}` },
      body: JSON.stringify(['ACL', 'RESTTOKEN', user, password]),
    });
    return ((await reply.json()) as { result: string }).result;
  };

  beforeEach(async () => {
    await setUser('reset', 'on', '>first-password', `&${name('mine*')}`, '+@all', '-monitor');
  });

  afterAll(async () => {
    await redis.call('ACL', 'DELUSER', user);
  });

  test('Redis decides on channels and on the monitor', async () => {
    const token = await tokenOf('first-password');
    const mine = await open(`/subscribe/${name('mine')}`, { token });
    await redis.publish(name('mine'), 'x');
    expect(await mine.received(2)).toEqual([`subscribe,${name('mine')},1`, `message,${name('mine')},x`]);
    for (const path of [`/subscribe/${name('mine')}/${name('other')}`, `/psubscribe/*`, '/monitor']) {
      const refused = await open(path, { token });
      expect([refused.status, await refused.untilEnd()]).toEqual([
        400,
        expect.stringMatching(/^\{"error":"NOPERM /),
      ]);
    }
    await redis.publish(name('mine'), 'y');
    expect((await mine.received(3))[2]).toBe(`message,${name('mine')},y`);
    // one the user's, none left of the refused ones
    expect(await listeners(name('mine'))).toBe(1);
  });

  test('a channel that is taken away ends its streams, others go on', async () => {
    const token = await tokenOf('first-password');
    const taken = await open(`/subscribe/${name('mine1')}`, { token });
    const kept = await open(`/subscribe/${name('mine2')}`, { token });
    await setUser('resetchannels', `&${name('mine2')}`);
    await taken.untilEnd();
    await eventually(() => expect(kept.text).toContain(': reconnected\n\n'));
    await redis.publish(name('mine2'), 'x');
    expect((await kept.received(2))[1]).toBe(`message,${name('mine2')},x`);
  });

  test.each([
    ['a new password', () => setUser('resetpass', '>second-password')],
    ['no user', () => redis.call('ACL', 'DELUSER', user)],
  ])('%s ends the streams', async (_, change) => {
    const token = await tokenOf('first-password');
    const stream = await open(`/subscribe/${name('mine')}`, { token });
    await change();
    await stream.untilEnd();
    expect((await open(`/subscribe/${name('mine')}`, { token })).status).toBe(401);
  });
});
