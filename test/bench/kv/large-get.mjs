import { randomBytes } from 'node:crypto';
import { compare } from '../frame.mjs';
import { fixed } from '../load.mjs';
import { bareIoredis } from './bare-ioredis.mjs';
import { get } from './requests.mjs';
import { withKvServers } from './servers.mjs';

export const backends = ['redis'];

const REFERENCE = 'ioredis, no HTTP';

/**
 * GETs of 1 MB of text: MB/s.
 * @param {import('../frame.mjs').Load} load
 */
export function run(load) {
  return withKvServers(async ({ redis, prefix, token, reference, gateway }) => {
    const key = `${prefix}large`;
    const value = randomBytes(500_000).toString('hex');
    const bytes = Buffer.from(value);
    await redis.set(key, value);
    const text = JSON.stringify({ result: value });
    const base64 = JSON.stringify({ result: bytes.toString('base64') });
    const encoded = Buffer.from(
      get(`/kv/get/${key}`, token).toString().replace(/\r\n$/, 'Upstash-Encoding: base64\r\n\r\n'),
    );
    const goal = { ratio: 0.5 };
    const contenders = [
      bareIoredis(REFERENCE, async () => (await redis.getBuffer(key)).equals(bytes)),
      { name: 'node:http + ioredis', server: reference, session: fixed(get(`/get/${key}`), text) },
      { name: 'Portico, text', server: gateway, session: fixed(get(`/kv/get/${key}`, token), text), goal },
      { name: 'Portico, base64', server: gateway, session: fixed(encoded, base64), goal },
    ];
    return compare({ title: 'kv: GET of 1 MB', contenders, connections: 8, unit: 'MB' }, load);
  });
}
