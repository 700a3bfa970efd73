import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { type AdminCall, adminCaller, makeToken, startTwo, storePlace } from '../../support/admin.js';
import { backendAddress } from '../../support/environment.js';
import { EventStreamClient } from '../../support/event-stream.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { kvCaller } from '../../support/kv/kv.js';
import { startRelay, type TcpRelay } from '../../support/tcp-relay.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const KEY = `admin:${randomBytes(4).toString('hex')}`;

const stores = {
  postgres: storePlace('postgres', (name) =>
    withPostgres(async (client) => {
      const { rows } = await client.query(`select * from ${pg.escapeIdentifier(name)}.tokens`);
      return JSON.stringify(rows);
    }),
  ),
  redis: storePlace('redis', async (name) => {
    const redis = new Redis(backendAddress('PORTICO_REDIS_URL'));
    const all = await redis.hgetall(`${name}:tokens`);
    redis.disconnect();
    return JSON.stringify(all);
  }),
};

const services = {
  kv: {},
  vector: { database: { schema: 'admin_vector' }, indexes: [{ dimension: 2 }] },
};

afterAll(() => dropSchema('admin_vector'));

describe.each(Object.values(stores))('with tokens in $kind', (place) => {
  let gateways: RunningGateway[];
  let urls: [string, string];
  let call: AdminCall;

  beforeAll(async () => {
    gateways = await startTwo({ ...services, admin: place.settings });
    urls = gateways.map(({ url }) => url) as [string, string];
    call = adminCaller(urls[0]);
    await eventually(async () => expect((await call('GET', '/tokens')).status).toBe(200));
  });
  afterAll(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await place.remove();
  });

  const kv = (token: string, url = urls[0]) => kvCaller(`${url}/kv`, token);
  const get = async (token: string, url = urls[0]) => (await kv(token, url).run('GET', KEY)).status;

  test('is valid at once where it was made and soon elsewhere, until it is revoked', async () => {
    const { id, token } = await makeToken(call, { grants: [{ service: 'kv' }] });
    expect(await get(token)).toBe(200);
    await eventually(async () => expect(await get(token, urls[1])).toBe(200), PROMPT_MS);
    expect((await kv(token).run('SET', KEY, '1')).body).toEqual({ result: 'OK' });
    const stream = await EventStreamClient.open(`${urls[1]}/kv/subscribe/${KEY}`, token);
    await stream.received(1);
    expect(await call('DELETE', `/tokens/${id}`)).toMatchObject({ status: 200, body: { id, revoked: true } });
    expect(await get(token)).toBe(401);
    await eventually(async () => expect(await get(token, urls[1])).toBe(401), PROMPT_MS);
    await stream.untilEnd();
    expect((await call('DELETE', `/tokens/${id}`)).status).toBe(404);
    await kv(TOKENS.kv).run('DEL', KEY);
  });

  test('is valid for what it was made for, and nothing else', async () => {
    const { token } = await makeToken(call, {
      grants: [{ service: 'kv', access: 'read', instances: ['default'] }],
    });
    expect(await get(token)).toBe(200);
    expect((await kv(token).run('SET', KEY, '1')).text).toContain('NOPERM');
    expect((await vectorCaller(`${urls[0]}/vector`)('/info', undefined, { token })).status).toBe(403);
    expect((await call('GET', '/tokens', undefined, token)).status).toBe(401);
    const index = await makeToken(call, { grants: [{ service: 'vector', access: 'read' }] });
    const vector = vectorCaller(`${urls[0]}/vector`);
    expect((await vector('/info', undefined, { token: index.token })).status).toBe(200);
    const upsert = await vector('/upsert', { id: 'a', vector: [1, 0] }, { token: index.token });
    expect(upsert.status).toBe(403);
  });

  test('makes no credentials that outlive it, unless it may', async () => {
    const plain = await makeToken(call, { grants: [{ service: 'kv' }] });
    expect((await kv(plain.token).run('ACL', 'GENPASS')).text).toContain('NOPERM');
    expect((await kv(plain.token).pipeline(['ACL', 'LIST'])).text).toContain('NOPERM');
    expect((await kv(plain.token).run('ACL', 'WHOAMI')).status).toBe(200);
    const admin = await makeToken(call, { grants: [{ service: 'kv', permissions: { admin: true } }] });
    expect((await kv(admin.token).run('ACL', 'GENPASS')).status).toBe(200);
  });

  test('ends by itself', async () => {
    const { token } = await makeToken(call, { grants: [{ service: 'kv' }], expiresIn: 2 });
    expect(await get(token)).toBe(200);
    await eventually(async () => expect(await get(token)).toBe(401), PROMPT_MS);
  });

  test('keeps to its rate and its quota, over all gateways', async () => {
    for (const limit of [
      { rateLimit: { requests: 5, seconds: 600 } },
      { quota: { requests: 5, per: 'month' } },
    ]) {
      const { token } = await makeToken(call, { grants: [{ service: 'kv' }], ...limit });
      await eventually(async () => expect(await get(token, urls[1])).toBe(200), PROMPT_MS);
      const replies = [];
      for (let i = 0; i < 4; i++) replies.push(await kv(token, urls[i % 2]).run('PING'));
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect(replies[0]?.headers.get('ratelimit-limit')).toBe('5');
      expect(replies[0]?.headers.get('ratelimit-remaining')).toBe('3');
      for (const url of urls) {
        const over = await kv(token, url).run('PING');
        expect(over.status).toBe(429);
        expect(over.body).toEqual({ error: expect.stringMatching(/^ERR The .* of this token is used up/) });
        expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(1);
        expect(over.headers.get('ratelimit-remaining')).toBe('0');
      }
    }
  });

  test('shows and stores no token', async () => {
    const made = await makeToken(call, { name: 'listed', grants: [{ service: 'kv' }] });
    const one = await call('GET', `/tokens/${made.id}`);
    expect(one.body).toMatchObject({ id: made.id, name: 'listed', grants: [{ service: 'kv' }] });
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const query = cursor === undefined ? '' : `&cursor=${cursor}`;
      const page = await call<{ tokens: { id: string }[]; cursor?: string }>(
        'GET',
        `/tokens?limit=2${query}`,
      );
      expect(page.text).not.toContain('ptk_');
      ids.push(...page.body.tokens.map(({ id }) => id));
      cursor = page.body.cursor;
    } while (cursor !== undefined);
    expect(ids).toContain(made.id);
    expect(new Set(ids).size).toBe(ids.length);
    const contents = await place.contents();
    expect(contents).toContain(made.id);
    expect(contents).not.toContain(made.token);
  });

  test('refuses what it cannot mean, and makes nothing', async () => {
    const before = await place.contents();
    for (const [about, word] of [
      [{ grants: [] }, 'grants'],
      [{ grants: [{ service: 'nothing' }] }, 'kv, vector'],
      [{ grants: [{ service: 'kv', instances: ['other'] }] }, 'kv has no other'],
      [{ grants: [{ service: 'vector', permissions: { x: 1 } }] }, 'vector knows none'],
      [{ grants: [{ service: 'kv', permissions: { x: 1 } }] }, 'permissions'],
      [{ grants: [{ service: 'kv', acess: 'read' }] }, 'acess'],
      [{ grants: [{ service: 'kv' }], expiresIn: 1, expiresAt: '2099-01-01T00:00:00Z' }, 'not both'],
    ] as const) {
      const { status, body } = await call('POST', '/tokens', { name: 'x', ...about });
      expect({ status, error: body.error }).toEqual({ status: 400, error: expect.stringContaining(word) });
    }
    expect(await place.contents()).toBe(before);
  });

  test('a name that no store takes keeps nothing else out of the audit log', async () => {
    expect((await call('DELETE', '/tokens/%00')).status).toBe(404);
    await eventually(async () => {
      const { body } = await call<{ entries: { target: object }[] }>('GET', '/audit?limit=1');
      expect(body.entries[0]).toMatchObject({ target: { id: '\u{FFFD}' } });
    }, PROMPT_MS);
  });

  test('tells in the audit log what was done, by whom, and what became of it', async () => {
    const { id, token } = await makeToken(call, { grants: [{ service: 'kv' }, { service: 'vector' }] });
    await vectorCaller(`${urls[0]}/vector`)('/reset', undefined, { token });
    await kv(token).pipeline(['PING'], ['SCRIPT', 'FLUSH']);
    await call('DELETE', `/tokens/${id}`);
    type Audit = { entries: { operation: string; who: string; target: object }[]; cursor?: string };
    const entries = await eventually(async () => {
      const { body } = await call<Audit>('GET', '/audit?limit=4');
      expect(body.entries[0]).toMatchObject({ operation: 'admin.revokeToken', target: { id } });
      expect(body.cursor).toBeDefined();
      return body.entries;
    });
    expect(entries.slice(0, 4)).toMatchObject([
      { operation: 'admin.revokeToken', kind: 'administrative', who: 'administrator', status: 200 },
      { operation: 'kv.pipeline', kind: 'destructive', who: id, target: { SCRIPT: 'FLUSH' }, status: 200 },
      { operation: 'vector.reset', kind: 'destructive', who: id, from: '127.0.0.1', status: 200 },
      { operation: 'admin.createToken', kind: 'administrative', target: { token: id }, status: 201 },
    ]);
    const all = await call<Audit>('GET', '/audit?limit=1000');
    const first = await call<Audit>('GET', '/audit?limit=2');
    const second = await call<Audit>('GET', `/audit?limit=2&cursor=${first.body.cursor}`);
    expect([...first.body.entries, ...second.body.entries]).toEqual(all.body.entries.slice(0, 4));
    expect(all.text).not.toContain('ptk_');
  });
});

test('what was written into Redis by others is no token', async () => {
  const place = storePlace('redis', async () => '');
  const gateway = await startGateway({ kv: {}, admin: place.settings });
  const call = adminCaller(gateway.url);
  await eventually(async () => expect((await call('GET', '/tokens')).status).toBe(200));
  const made = await makeToken(call, { grants: [{ service: 'kv', access: 'read' }] });
  const redis = new Redis(place.url);
  const key = `${place.settings.prefix}tokens`;
  const sealed = String(await redis.hget(key, made.id));
  // with more than it was made with, and once more under another name
  await redis.hset(key, made.id, sealed.replace('"access":"read"', '"access":"full"'), 'tk_other', sealed);
  await redis.set(`${place.settings.prefix}version`, 'another');
  redis.disconnect();
  const kv = kvCaller(`${gateway.url}/kv`, made.token);
  await eventually(async () => expect((await kv.run('PING')).status).toBe(401), PROMPT_MS);
  expect((await call('GET', '/tokens')).body).toEqual({ tokens: [] });
  await gateway.stop();
  await place.remove();
});

describe('while the store does not answer', () => {
  const place = storePlace('postgres', async () => '');
  let relay: TcpRelay;
  let gateway: RunningGateway;

  beforeAll(async () => {
    const url = new URL(place.url);
    relay = await startRelay(Number(url.port));
    url.port = String(relay.port);
    gateway = await startGateway({
      kv: {},
      admin: { ...place.settings, storeUrl: url.href, graceMs: 4_000 },
    });
  });
  afterAll(async () => {
    await gateway.stop();
    await relay.stop();
    await place.remove();
  });

  test.each(['cut', 'hold'] as const)(
    'known tokens stay valid for a time, and then nobody gets in (%s)',
    async (fault) => {
      const call = adminCaller(gateway.url);
      await eventually(async () => expect((await call('GET', '/tokens')).status).toBe(200));
      const { token } = await makeToken(call, {
        grants: [{ service: 'kv' }],
        rateLimit: { requests: 100_000, seconds: 60 },
      });
      const status = async (one: string) => (await kvCaller(`${gateway.url}/kv`, one).run('PING')).status;
      expect(await status(token)).toBe(200);
      relay[fault]();
      expect(await status(token)).toBe(200);
      // which of them was made meanwhile nobody can tell
      await eventually(async () => expect(await status('ptk_unknown')).toBe(503));
      await eventually(async () => expect(await status(token)).toBe(503));
      const refused = await kvCaller(`${gateway.url}/kv`, token).run('PING');
      expect(refused.headers.get('retry-after')).toBe('1');
      expect(await status(TOKENS.kv)).toBe(200);
      expect(await status('no token of this kind')).toBe(401);
      expect((await call('POST', '/tokens', { name: 'x', grants: [{ service: 'kv' }] })).status).toBe(503);
      relay.release();
      await eventually(async () => expect(await status(token)).toBe(200));
      expect(await status('ptk_unknown')).toBe(401);
    },
  );
});

test('without an administrator there is no /admin, and no token of the kind is looked up', async () => {
  const gateway = await startGateway({ kv: {} });
  expect((await adminCaller(gateway.url)('GET', '/tokens')).status).toBe(404);
  expect((await kvCaller(`${gateway.url}/kv`, 'ptk_unknown').run('PING')).status).toBe(401);
  await gateway.stop();
});
