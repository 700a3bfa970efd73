import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { backendAddress } from '../support/environment.js';
import { eventually } from '../support/eventually.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';
import { dropSchema, vectorCaller } from '../support/vector.js';

let folder: string;
let gateways: SpawnedGateway[];
let redis: [Redis, Redis];

const database = (number: number) => {
  const url = new URL(backendAddress('PORTICO_REDIS_URL'));
  url.pathname = `/${number}`;
  return url.href;
};
const SCHEMAS = ['import_from', 'import_to'];
const document = (schema: string) => ({
  kv: {},
  vector: { database: { schema }, indexes: [{ dimension: 2 }] },
});

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portico-test-import-'));
  redis = [new Redis(database(8)), new Redis(database(9))];
  for (const one of redis) await one.flushdb();
  gateways = await Promise.all(
    SCHEMAS.map((schema, i) => spawnGateway(document(schema), { PORTICO_REDIS_URL: database(8 + i) })),
  );
  for (const { url } of gateways)
    await eventually(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  for (const one of redis) {
    await one.flushdb();
    one.disconnect();
  }
  for (const schema of SCHEMAS) await dropSchema(schema);
  await rm(folder, { recursive: true, force: true });
});

interface Import {
  readonly service: 'kv' | 'vector';
  readonly state: string;
  /** The first line that says how far it is ends the process. */
  readonly isKilled?: boolean;
  readonly more?: readonly string[];
}

async function importAll({ service, state, isKilled = false, more = [] }: Import) {
  const [from, to] = gateways.map(({ url }) => `${url}/${service}`) as [string, string];
  const token = TOKENS[service];
  const args = ['--from', from, '--from-token', token, '--to', to, '--to-token', token, '--state', state];
  const child = spawn(
    process.execPath,
    ['compose/portico.mjs', 'import', '--service', service, ...args, ...more],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    if (isKilled) child.kill('SIGKILL');
  });
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, lines };
}

test('kv: every type, bytes and lifetimes, and it goes on where it was ended', async () => {
  const [source, target] = redis;
  const filling = source.pipeline();
  for (let i = 0; i < 1_500; i++) filling.set(`plain:${i}`, `value ${i}`);
  filling.set('ends', 'soon', 'EX', 1_000);
  filling.set('bytes', Buffer.from([0, 255, 128, 10]));
  filling.set(Buffer.from([107, 255]), 'a name of bytes');
  filling.rpush('list', ...Array.from({ length: 1_200 }, (_, i) => `element ${i}`));
  filling.hset('hash', Object.fromEntries(Array.from({ length: 1_200 }, (_, i) => [`field ${i}`, `ü ${i}`])));
  filling.sadd('set', 'one', 'OK', '');
  filling.sadd('set of bytes', Buffer.from([255, 1]));
  filling.zadd('sorted', 1.5, 'a', '-inf', 'b', 3, 'c');
  filling.xadd('stream', '5-1', 'field', 'value', 'field', 'again').xadd('stream', '6-0', 'x', 'y');
  filling.xgroup('CREATE', 'stream', 'readers', '5-1');
  filling.pexpire('hash', 900_000);
  await filling.exec();
  // what was there before does not stay in a key that is moved
  await target.rpush('list', 'stale');

  const state = join(folder, 'kv.json');
  const killed = await importAll({ service: 'kv', state, isKilled: true });
  expect(killed.code).toBeNull();
  expect(await target.dbsize()).toBeLessThan(await source.dbsize());
  const { code, lines } = await importAll({ service: 'kv', state });
  expect(lines[0]).toMatch(/^goes on where .* says: \d+ were moved before$/);
  expect(lines.at(-1)).toMatch(/^done: 15\d\d moved and verified, 0 not$/);
  expect(code).toBe(0);

  expect(await target.dbsize()).toBe(await source.dbsize());
  const keys = await source.keysBuffer('*');
  const dumps = async (one: Redis) => {
    const batch = one.pipeline();
    for (const key of keys) batch.type(key);
    return (await batch.exec())?.map(([, type]) => type);
  };
  expect(await dumps(target)).toEqual(await dumps(source));
  expect(await target.getBuffer('bytes')).toEqual(Buffer.from([0, 255, 128, 10]));
  expect(await target.getBuffer(Buffer.from([107, 255]))).toEqual(Buffer.from('a name of bytes'));
  expect(await target.lrange('list', 0, -1)).toEqual(await source.lrange('list', 0, -1));
  expect(await target.hgetall('hash')).toEqual(await source.hgetall('hash'));
  expect((await target.smembers('set')).sort()).toEqual(['', 'OK', 'one']);
  expect(await target.smembersBuffer('set of bytes')).toEqual([Buffer.from([255, 1])]);
  expect(await target.zrange('sorted', '0', '-1', 'WITHSCORES')).toEqual(['b', '-inf', 'a', '1.5', 'c', '3']);
  expect(await target.xrange('stream', '-', '+')).toEqual(await source.xrange('stream', '-', '+'));
  expect(await target.xinfo('GROUPS', 'stream')).toEqual(
    expect.arrayContaining([expect.arrayContaining(['readers'])]),
  );
  for (const key of ['ends', 'hash', 'plain:1'])
    expect(Math.abs((await target.pttl(key)) - (await source.pttl(key)))).toBeLessThan(5_000);

  const again = await importAll({ service: 'kv', state });
  expect(again.code).toBe(1);
  expect(again.lines.join()).toContain('this import is done');
  expect(readFileSync(state, 'utf8')).not.toContain(TOKENS.kv);
});

test('vector: every namespace with its records, and it goes on where it was ended', async () => {
  const [source, target] = gateways.map(({ url }) => vectorCaller(`${url}/vector`)) as [
    ReturnType<typeof vectorCaller>,
    ReturnType<typeof vectorCaller>,
  ];
  const records = Array.from({ length: 450 }, (_, i) => ({
    id: `id ${i}`,
    vector: [1, i / 7],
    metadata: { i, text: 'ü' },
    ...(i % 2 === 0 ? { data: `data ${i}` } : {}),
  }));
  expect((await source('/upsert', records)).status).toBe(200);
  expect((await source('/upsert/a%20name', records.slice(0, 150))).status).toBe(200);
  const state = join(folder, 'vector.json');
  expect((await importAll({ service: 'vector', state, isKilled: true })).code).toBeNull();
  const { code, lines } = await importAll({ service: 'vector', state });
  expect(lines[0]).toMatch(/^goes on where/);
  expect(lines.at(-1)).toBe('done: 600 moved and verified, 0 not');
  expect(code).toBe(0);
  for (const path of ['/range', '/range/a%20name']) {
    const wanted = {
      cursor: '0',
      limit: 1_000,
      includeVectors: true,
      includeMetadata: true,
      includeData: true,
    };
    type Page = { vectors: { id: string }[] };
    const [one, other] = await Promise.all([source(path, wanted), target(path, wanted)]);
    const byId = (page: unknown) => [...(page as Page).vectors].sort((a, b) => (a.id < b.id ? -1 : 1));
    expect(byId(other.result)).toEqual(byId(one.result));
  }
});

test('says in one sentence what it lacks', async () => {
  const wrong = await importAll({
    service: 'vector',
    state: join(folder, 'x.json'),
    more: ['--match', 'a*'],
  });
  expect(wrong).toEqual({ code: 1, lines: ['--match is for kv'] });
});
