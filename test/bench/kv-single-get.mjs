import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { compare } from './frame.mjs';
import { startServer } from './server-process.mjs';

/** Which backends must run, by their names in `compose/backends.mjs`. */
export const backends = ['redis'];

const VALUE = 'x'.repeat(100);

/**
 * One GET of 100 bytes a request, through the whole gateway, against bare node:http with ioredis.
 * @param {{ rounds: number, seconds: number, connections: number }} load
 */
export async function run(load) {
  const url = process.env.PORTICO_REDIS_URL;
  const key = `bench:${randomBytes(6).toString('hex')}`;
  const token = randomBytes(24).toString('base64url');
  const redis = new Redis(url);
  const folder = await mkdtemp(join(tmpdir(), 'portico-bench-'));
  const servers = [];
  try {
    await redis.set(key, VALUE, 'EX', 3_600);
    const reference = await startServer({
      args: ['test/bench/kv-reference.mjs'],
      env: { PORTICO_REDIS_URL: url },
      portOf: (line) => Number(/^listening on (\d+)$/.exec(line)?.[1]) || undefined,
    });
    servers.push(reference);
    const gateway = await startGateway(folder, url, token);
    servers.push(gateway);
    const expectedBody = Buffer.from(JSON.stringify({ result: VALUE }));
    const contenders = [
      { name: 'node:http + ioredis', server: reference, request: get(`/get/${key}`), expectedBody },
      { name: 'Portico', server: gateway, request: get(`/kv/get/${key}`, token), expectedBody },
    ];
    return await compare({ title: 'kv: single GET of 100 bytes', contenders, goal: 0.8 }, load);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await redis.del(key).catch(() => undefined);
    redis.disconnect();
    await rm(folder, { recursive: true, force: true });
  }
}

async function startGateway(folder, url, token) {
  const file = join(folder, 'portico.yaml');
  await writeFile(file, 'http: { port: 0 }\n', { mode: 0o600 });
  const off = Object.fromEntries(
    ['VECTOR', 'BROKER', 'QUEUE'].map((name) => [`PORTICO_${name}_ENABLED`, 'false']),
  );
  return startServer({
    args: ['dist/main.js', '--config', file],
    env: { ...off, PORTICO_REDIS_URL: url, PORTICO_KV_TOKEN: token },
    portOf: (line) => Number(/"port":(\d+).*"msg":"listening"/.exec(line)?.[1]) || undefined,
  });
}

function get(path, token) {
  const credentials = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
  return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${credentials}\r\n`);
}
